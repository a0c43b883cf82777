/// The thread on which offline forms are made, so that no server loop waits for the index, and what it
/// made a moment ago.
import CachePolicy
import HLS
import HTTP
import Posix
import Reactor
import Routing
import Store
import Synchronization
import URISyntax

/// What a playlist is without the network.
enum OfflineForm: Sendable {
    /// Everything that it names is kept.
    case whole
    /// The origin's text, cut to what can be played.
    case cut(OfflineText)
    /// Nothing that it names can be played.
    case nothing
}

/// A cut text; equal texts keep their number, by which rewritten forms are held in memory.
final class OfflineText: Sendable {
    let number: UInt64
    let bytes: [UInt8]

    init(number: UInt64, bytes: [UInt8]) {
        self.number = number
        self.bytes = bytes
    }
}

/// Makes offline forms one after the other.
///
/// Any thread may ask.
final class OfflineDesk: Sendable {
    /// One playlist as one session sees it.
    struct Question: Sendable {
        let resource: Resource
        let object: StoredObject
        let variables: [String: String]

        fileprivate var asksNobody: Bool { resource.policy == .offline }
        fileprivate var name: Name {
            Name(
                key: resource.key, generation: object.generation, session: resource.session.id,
                asksNobody: asksNobody)
        }
    }

    fileprivate struct Name: Hashable, Sendable {
        let key: ObjectKey
        let generation: UInt64
        let session: SessionID
        let asksNobody: Bool
    }

    private struct State: Sendable {
        var forms = RecentMap<Name, (form: OfflineForm, at: Monotonic)>(capacity: 512)
        var titles = RecentMap<Name, (title: OfflineTitle, at: Monotonic)>(capacity: 64)
        var texts: UInt64 = 0
    }

    /// What was made is good for so long: what is kept changes while players play.
    private static let formLife = Interval.seconds(1 as Int64)
    /// Pictures and sound that are asked for one after the other should be cut alike.
    private static let titleLife = Interval.seconds(5 as Int64)
    /// More requests than this are turned away, so that nobody can pile them up.
    private static let mostWaiting = 256

    private let thread: LoopThread
    private let state = Mutex(State())
    private let waiting = Atomic<Int>(0)

    /// Starts the thread.
    init() throws(SystemError) {
        thread = try LoopThread(name: "offline") { _ in }
    }

    /// Finishes what was begun and ends the thread; blocks.
    func stop() { thread.stopAndJoin() }

    /// The form that was made a moment ago; nil where it has to be asked for.
    func known(_ question: Question, now: Monotonic) -> OfflineForm? {
        let name = question.name
        return state.withLock { state in
            guard let known = state.forms[name], now - known.at < Self.formLife else { return nil }
            return known.form
        }
    }

    /// Makes a form; `reply` is called once on the desk's thread, with nil where too many wait.
    func ask(
        _ question: Question, _ core: ProxyCore, reply: @escaping @Sendable (OfflineForm?) -> Void
    ) {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.mostWaiting else {
            waiting.subtract(1, ordering: .relaxed)
            return reply(nil)
        }
        let isTaken = thread.handle.enqueue { [self] _ in
            defer { waiting.subtract(1, ordering: .relaxed) }
            if let known = known(question, now: .now()) { return reply(known) }
            let form = make(question, core)
            state.withLock { $0.forms[question.name] = (form, .now()) }
            reply(form)
        }
        if !isTaken { reply(nil) }
    }

    // MARK: Making

    private func make(_ question: Question, _ core: ProxyCore) -> OfflineForm {
        let reading = OfflineReading(
            core: core, session: question.resource.session, asksNobody: question.asksNobody)
        guard
            let list = reading.list(
                question.resource, question.object, variables: question.variables)
        else { return .whole }
        do throws(PlaylistError) {
            if list.isMultivariant {
                let title = title(of: list, reading, fits: { _ in true })
                guard !title.isEmpty else { return .nothing }
                return text(try reading.form(of: list, title), question)
            }
            let url = question.resource.url
            guard !list.read.summary.isSkipDelta, let plan = plan(of: list, reading) else {
                return .whole
            }
            guard !plan.isEmpty else { return .nothing }
            return text(try reading.form(of: list, at: url, plan), question)
        } catch {
            // Rewriting will find the same fault, and say so.
            return .whole
        }
    }

    /// The plan for a media playlist: its title's, where that lists it; else one of its own.
    private func plan(of list: OfflineReading.List, _ reading: OfflineReading) -> OfflinePlan? {
        let url = list.resource.url
        if let parent = reading.parent(of: url) {
            let title = title(of: parent, reading) { $0.generations[url] == list.generation }
            if title.plan.playable.contains(url), title.generations[url] == list.generation {
                return title.plan
            }
        }
        return reading.kept(list).map { OfflinePlan(only: $0, at: url) }
    }

    private func title(
        of master: OfflineReading.List, _ reading: OfflineReading,
        fits: (OfflineTitle) -> Bool
    ) -> OfflineTitle {
        let name = Name(
            key: master.resource.key, generation: master.generation, session: reading.session.id,
            asksNobody: reading.asksNobody)
        let now = Monotonic.now()
        let known = state.withLock { $0.titles[name] }
        if let known, now - known.at < Self.titleLife, fits(known.title) { return known.title }
        let made = reading.plan(of: master)
        state.withLock { $0.titles[name] = (made, now) }
        return made
    }

    /// A cut text under the number that it had before, if it is the same.
    private func text(_ bytes: [UInt8]?, _ question: Question) -> OfflineForm {
        guard let bytes else { return .whole }
        return state.withLock { state in
            if case .cut(let former)? = state.forms[question.name]?.form, former.bytes == bytes {
                return .cut(former)
            }
            state.texts += 1
            return .cut(OfflineText(number: state.texts, bytes: bytes))
        }
    }
}
