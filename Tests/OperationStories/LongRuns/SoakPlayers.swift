// The players of a soak: each round of one checks every byte that it gets.
import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization

/// One player of a soak; its rounds run on one thread.
final class SoakPlayer {
    let world: SoakWorld
    var dice: SeededDice
    private var connection: (base: String, player: ScriptedPlayer)?

    init(_ world: SoakWorld, _ stream: Int) {
        self.world = world
        dice = SeededDice(UInt64(stream) &+ 1, 60)
    }

    /// Sends a request over a kept connection of its own; throws a complaint without an answer.
    func ask(
        _ url: String, method: String = "GET", headers: [WireHead.Field] = [], body: String? = nil,
        excuses: [SoakDisturbance] = [.restart, .outage]
    ) throws -> PlayerResponse {
        let base = world.daemon.baseURL
        if connection?.base != base {
            connection = (base, ScriptedPlayer(base, deadline: .seconds(60)))
        }
        guard let player = connection?.player else { throw SoakComplaint(text: "no player") }
        do {
            let answer = try player.get(
                url, headers: headers, method: method, body: body.map { Array($0.utf8) })
            world.count(answer)
            return answer
        } catch {
            connection = nil
            let words = (error as? ScenarioFailure)?.message ?? "\(error)"
            throw SoakComplaint(text: "\(method) \(url): \(words)", excuses: excuses)
        }
    }

    func url(_ path: String) -> String { "/" + world.cdn.url(path) }

    /// Reads a list; its URI lines.
    func list(_ url: String, excuses: [SoakDisturbance] = [.restart, .outage]) throws -> String {
        let answer = try ask(url, excuses: excuses)
        guard answer.status == 200, answer.complete else {
            throw SoakComplaint(text: Self.words(url, answer), excuses: excuses)
        }
        return answer.text
    }

    static func words(_ url: String, _ answer: PlayerResponse) -> String {
        let whole = answer.broken.map { ", \($0)" } ?? ""
        let about = answer.status < 400 ? "" : " " + String(answer.text.prefix(200))
        return "\(url): \(answer.status), \(answer.body.count) bytes\(whole)\(about)"
    }

    /// Fetches a link and compares it with what the origin has under `path`, or a part of that.
    func fetch(
        _ link: String, of path: String, range: Range<Int>? = nil,
        excuses: [SoakDisturbance] = [.restart, .outage]
    ) throws {
        let field = range.map { [("Range", "bytes=\($0.lowerBound)-\($0.upperBound - 1)")] } ?? []
        let answer = try ask(link, headers: field, excuses: excuses)
        guard answer.status == (range == nil ? 200 : 206), answer.complete else {
            // What came of a body that breaks off has to be right, too.
            if answer.status == 200 || answer.status == 206,
                !isContent(
                    answer.body, of: path, from: range?.lowerBound ?? 0, count: answer.body.count)
            {
                throw SoakComplaint(
                    text: "wrong bytes of a broken body, \(path), \(Self.words(link, answer))",
                    excuses: [])
            }
            throw SoakComplaint(
                text: "\(path) as \(Self.words(link, answer))", excuses: excuses)
        }
        guard isContent(answer.body, of: path, from: range?.lowerBound ?? 0, count: range?.count)
        else {
            throw SoakComplaint(
                text: "WRONG BYTES of \(path), \(Self.words(link, answer)) \(answer.head)",
                excuses: [])
        }
    }

    /// Stops for up to so many milliseconds.
    func rest(_ milliseconds: Int) { usleep(UInt32(dice.roll(milliseconds) * 1000)) }

    // MARK: Films and feeds

    /// The links of a title's list with the paths that they stand for.
    ///
    /// Without its origin a list names only what is stored.
    func links(
        of title: SoakCatalogue.Title, excuses: [SoakDisturbance] = [.restart, .outage]
    ) throws -> (links: [String], paths: [String]) {
        let links = uriLines(try list(url(title.path), excuses: excuses))
        guard links.count < title.segments.count else { return (links, title.segments) }
        let paths = links.compactMap { link in
            originName(link).flatMap { name in
                title.segments.first { $0.split(separator: "/").last.map(String.init) == name }
            }
        }
        guard paths.count == links.count, !paths.isEmpty, excuses.contains(.outage),
            world.wasDisturbed(by: excuses, since: .now)
        else {
            throw SoakComplaint(
                text: "\(links.count) links in \(title.path): \(links)", excuses: [])
        }
        return (links, paths)
    }

    /// Plays a part of a film in order, with seeks, ranges and bodies left in the middle.
    func film() throws {
        let films = world.catalogue.films
        // A few are played often, the others now and then.
        let film = films[dice.oneIn(3) ? dice.roll(films.count) : dice.roll(3)]
        let (links, paths) = try links(of: film)
        var place = dice.roll(links.count)
        for _ in 0..<(2 + dice.roll(10)) where place < links.count {
            let path = paths[place]
            switch dice.roll(6) {
            case 0:
                let first = dice.roll(30_000)
                try fetch(links[place], of: path, range: first..<first + 1 + dice.roll(9_000))
            case 1: try leave(links[place], of: path)
            default: try fetch(links[place], of: path)
            }
            place = dice.oneIn(8) ? dice.roll(links.count) : place + 1
            rest(120)
        }
        world.count("films played")
    }

    /// Reads the beginning of a body and leaves.
    private func leave(_ link: String, of path: String) throws {
        do {
            let stream = try ScriptedPlayer(world.daemon.baseURL).open(link)
            let head = try stream.readHead()
            let body = try stream.read(1 + dice.roll(30_000))
            stream.abort()
            guard head.status == 200 else { return }
            if !isContent(body, of: path, count: body.count) {
                throw SoakComplaint(text: "WRONG BYTES of \(path) before leaving", excuses: [])
            }
        } catch let failure as ScenarioFailure {
            throw SoakComplaint(text: failure.message)
        }
    }

    /// Swipes through a feed and plays what is on the screen.
    func feed(_ name: String, at place: inout Int?) throws {
        let shorts = world.catalogue.shorts
        let moved = try place.map { place in
            try ask("/api/feeds/\(name)/position?index=\(place)", method: "POST").status
        }
        // After two crashes in a row it waits for a new order.
        if moved != 200 {
            let entries = shorts.map { "\"\(world.cdn.url($0.path))\"" }.joined(separator: ",")
            let made = try ask(
                "/api/feeds/\(name)", method: "PUT", body: "{\"entries\":[\(entries)]}")
            guard made.status == 200 || made.status == 201 else {
                throw SoakComplaint(text: Self.words("PUT feed", made))
            }
            place = place ?? 0
        }
        let item = shorts[place ?? 0]
        let (links, paths) = try links(of: item)
        for (link, path) in zip(links, paths).prefix(1 + dice.roll(item.segments.count)) {
            try fetch(link, of: path)
            rest(200)
        }
        place = ((place ?? 0) + (dice.oneIn(9) ? 7 : 1)) % shorts.count
        world.count("items of feeds played")
        rest(800)
    }

    // MARK: What changes under a mount

    func changing() throws {
        let number = dice.roll(SoakCatalogue.changing)
        let link = "/changing" + SoakCatalogue.path(ofChanging: number).dropFirst("/mount".count)
        let sent = ContinuousClock.now
        let answer = try ask(link)
        guard answer.status == 200, answer.complete else {
            throw SoakComplaint(text: Self.words(link, answer))
        }
        guard let age = world.catalogue.age(answer.body, ofChanging: number, at: sent) else {
            throw SoakComplaint(text: "WRONG BYTES of \(Self.words(link, answer))", excuses: [])
        }
        // Ages are whole seconds, rounded down where the body was received.
        if age > Double(SoakCatalogue.lifetime + 2) {
            throw SoakComplaint(text: "\(link) was replaced \(age) s before the request")
        }
        if dice.oneIn(40) { world.catalogue.change(number) }
        world.count("checks of changing resources")
        rest(200)
    }
}
