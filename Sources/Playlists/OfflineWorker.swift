// The thread on which offline forms are made, so that no server loop waits for the index, and a
// cache of recent results.
import CachePolicy
import HLS
package import Model
package import Posix
import Reactor
import Routing
package import Store
import Synchronization
package import URISyntax

/// The offline form of a playlist.
package enum OfflineForm: Sendable {
    /// Every resource that it names is stored.
    case whole
    /// The origin's text, cut to the parts that can be played.
    case cut(OfflineText)
    /// No resource that it names can be played.
    case nothing

    /// The estimated memory in bytes.
    var byteCount: Int {
        guard case .cut(let text) = self else { return 200 }
        return text.bytes.count + 200
    }
}

/// A cut text; equal texts keep their number, which identifies rewritten forms in memory.
package final class OfflineText: Sendable {
    package let number: UInt64
    package let bytes: [UInt8]
    /// The first media sequence number that names another segment than in the origin's text; nil if
    /// there is none.
    package let movedFrom: Int?

    package init(number: UInt64, bytes: [UInt8], movedFrom: Int? = nil) {
        self.number = number
        self.bytes = bytes
        self.movedFrom = movedFrom
    }
}

/// Makes offline forms, one at a time.
///
/// Can be used from any thread.
package final class OfflineWorker: Sendable {
    /// One playlist in one session.
    package struct Question: Sendable {
        package let resource: Resource
        package let object: StoredObject
        package let variables: [String: String]

        package init(resource: Resource, object: StoredObject, variables: [String: String]) {
            self.resource = resource
            self.object = object
            self.variables = variables
        }

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

    /// A cached result and the conditions it is valid for.
    private struct Made<Value: Sendable>: Sendable {
        let value: Value
        let at: Monotonic
        /// `PlaylistSources.healthVersion` before it was made: the result depends on which origins
        /// and parents are down.
        let health: Int
    }

    private struct State: Sendable {
        var forms = RecentlyUsedMap<Name, Made<OfflineForm>>(
            mostKeys: 512, mostBytes: OfflineWorker.mostBytes)
        var titles = RecentlyUsedMap<Name, Made<OfflineTitle>>(
            mostKeys: 64, mostBytes: OfflineWorker.mostBytes)
        var lacking = RecentMap<Name, Made<[AbsoluteURL]>>(capacity: 512)
        var texts: UInt64 = 0
    }

    /// How long a form is valid; short, since the set of stored segments changes during playback.
    private static let formLife = Interval.seconds(1 as Int64)
    /// How long a plan is valid: video and audio requested one after the other should be cut alike.
    private static let titleLife = Interval.seconds(5 as Int64)
    /// The most bytes of all forms, and of all plans; the one made last is kept however long it is.
    private static let mostBytes = 64 << 20
    /// The most requests in the queue; further ones are rejected, so that the queue cannot grow
    /// without limit.
    private static let mostWaiting = 256

    private let sources: PlaylistSources
    private let thread: LoopThread
    private let state = Mutex(State())
    private let waiting = Atomic<Int>(0)
    /// True once requests that wait are rejected: nobody waits for their results any more.
    let isStopping = Atomic<Bool>(false)

    /// Starts the thread.
    package init(_ sources: PlaylistSources) throws(SystemError) {
        self.sources = sources
        thread = try LoopThread(name: "offline") { _ in }
    }

    /// Ends the request that was begun, rejects those that wait and ends the thread; blocks.
    package func stop() {
        isStopping.store(true, ordering: .releasing)
        thread.stopAndJoin()
    }

    /// Returns a form made recently; nil if it has to be requested.
    package func known(_ question: Question, now: Monotonic) -> OfflineForm? {
        let (name, health) = (question.name, sources.healthVersion)
        return state.withLock { state in
            guard let known = state.forms[name], known.health == health,
                now - known.at < Self.formLife
            else { return nil }
            return known.value
        }
    }

    /// Makes a form; `reply` is called once, on the worker's thread, with nil if the worker is stopped
    /// meanwhile; or immediately with nil if too many requests wait or the worker is stopped.
    package func ask(
        _ question: Question, reply: @escaping @Sendable (OfflineForm?) -> Void
    ) {
        let isTaken = perform(orReject: { reply(nil) }) { [self] in
            if let known = known(question, now: .now()) { return reply(known) }
            let health = sources.healthVersion
            let form = form(question)
            state.withLock {
                $0.forms.keep(
                    Made(value: form, at: .now(), health: health), bytes: form.byteCount,
                    for: question.name)
            }
            reply(form)
        }
        if !isTaken { reply(nil) }
    }

    /// Finds out where missing resources of a stored playlist would be fetched from.
    ///
    /// - Parameters:
    ///   - question: the playlist.
    ///   - reply: called once on the worker's thread, with one URL for each origin, empty if
    ///     everything is stored, nil if the worker is stopped meanwhile; or immediately with nil if
    ///     too many requests wait or the worker is stopped.
    package func lacking(
        _ question: Question,
        reply: @escaping @Sendable ([AbsoluteURL]?) -> Void
    ) {
        let isTaken = perform(orReject: { reply(nil) }) { [self] in
            let name = question.name
            if let known = state.withLock({ $0.lacking[name] }), !known.value.isEmpty,
                .now() - known.at < Self.formLife
            {
                return reply(known.value)
            }
            let found = lacking(question)
            state.withLock { $0.lacking[name] = Made(value: found, at: .now(), health: 0) }
            reply(found)
        }
        if !isTaken { reply(nil) }
    }

    /// Runs work on the worker's thread, after the requests that wait.
    ///
    /// - Parameters:
    ///   - reject: called there in its place if the worker is stopped meanwhile.
    ///   - body: the work.
    /// - Returns: false if too many requests wait, or the worker is stopped; nothing is called then.
    package func perform(
        orReject reject: @escaping @Sendable () -> Void, _ body: @escaping @Sendable () -> Void
    ) -> Bool {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.mostWaiting else {
            waiting.subtract(1, ordering: .relaxed)
            return false
        }
        let isTaken = thread.handle.enqueue { [self] _ in
            defer { waiting.subtract(1, ordering: .relaxed) }
            if isStopping.load(ordering: .acquiring) { return reject() }
            body()
        }
        if !isTaken { waiting.subtract(1, ordering: .relaxed) }
        return isTaken
    }

    // MARK: Making

    /// Returns where missing resources of a playlist would be fetched from; for the worker's
    /// thread.
    package func lacking(_ question: Question) -> [AbsoluteURL] {
        guard let (reading, list) = read(question) else { return [] }
        return reading.lacking(list)
    }

    private func read(_ question: Question) -> (OfflineReading, OfflineReading.List)? {
        let reading = OfflineReading(
            sources: sources, session: question.resource.session, asksNobody: question.asksNobody)
        return reading.list(question.resource, question.object, variables: question.variables)
            .map { (reading, $0) }
    }

    /// Returns the current form of a playlist; for the worker's thread.
    package func form(_ question: Question) -> OfflineForm {
        guard let (reading, list) = read(question) else { return .whole }
        if list.isMultivariant {
            let title = title(of: list, reading, fits: { _ in true })
            guard !title.isEmpty else { return .nothing }
            return text(reading.form(of: list, title), question)
        }
        let url = question.resource.listURL
        // Channels are not parts of a title: the list is worth having without any of them.
        guard !list.playlist.summary.isSkipDelta, !list.playlist.summary.isChannelList,
            let plan = plan(of: list, reading)
        else {
            return .whole
        }
        guard !plan.isEmpty else { return .nothing }
        let cut = reading.form(of: list, at: url, plan)
        return text(cut?.bytes, movedFrom: cut?.movedFrom, question)
    }

    /// Returns the plan for a media playlist: its title's plan if that includes it, otherwise its
    /// own; nil if it stays unchanged.
    private func plan(of list: OfflineReading.List, _ reading: OfflineReading) -> OfflinePlan? {
        let url = list.resource.listURL
        if let parent = reading.parent(of: url) {
            let title = title(of: parent, reading) { $0.generations[url] == list.generation }
            if title.isWhole, title.generations[url] == list.generation { return nil }
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
        let (now, health) = (Monotonic.now(), sources.healthVersion)
        let known = state.withLock { $0.titles[name] }
        if let known, known.health == health, now - known.at < Self.titleLife, fits(known.value) {
            return known.value
        }
        let made = reading.plan(of: master)
        let bytes = made.plan.byteCount
        state.withLock {
            $0.titles.keep(Made(value: made, at: now, health: health), bytes: bytes, for: name)
        }
        return made
    }

    /// Returns a cut text; an unchanged text keeps its number.
    private func text(
        _ bytes: [UInt8]?, movedFrom: Int? = nil, _ question: Question
    ) -> OfflineForm {
        guard let bytes else { return .whole }
        return state.withLock { state in
            if case .cut(let former)? = state.forms[question.name]?.value,
                former.movedFrom == movedFrom, former.bytes == bytes
            {
                return .cut(former)
            }
            state.texts += 1
            return .cut(
                OfflineText(number: state.texts, bytes: bytes, movedFrom: movedFrom))
        }
    }
}
