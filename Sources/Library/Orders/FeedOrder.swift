// The body of `PUT /api/feeds/<name>`: the list, the viewer's position, and the parameters.
package import Lookahead
import Model
package import Routing
package import URISyntax

/// A validated order of a feed.
package struct FeedOrder: Sendable {
    /// One item of the list.
    package struct Item: Sendable {
        /// Nil for an item that cannot be requested.
        package let entry: Entry?
        /// The item's weight; nil if its kind determines it.
        package let weight: Double?
        /// The fault of an item that cannot be requested.
        package var fault: String?
        /// A number shared by equal items.
        package var content = 0
    }

    package let items: [Item]
    package let index: Int
    package let direction: FeedPlanner.Direction
    /// The largest height to fetch; nil to follow the players' choice.
    package let height: Int?
    package let parameters: FeedParameters

    /// The most items of one list.
    static let mostItems = 50_000

    /// The reason why an order is rejected.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    /// The members of an order.
    private static let members = [
        "entries", "index", "direction", "height", "scheme", "parameters",
    ]

    /// Parses the body of a request.
    ///
    /// - Parameters:
    ///   - body: the JSON text.
    ///   - isSaved: true for an order that was accepted before, perhaps by another version, which
    ///     ignored or had other members.
    ///   - origin: returns the entry that a URL stands for: its own, or, for a URL of this daemon,
    ///     that of the origin's URL; nil if it leads to none.
    /// - Throws: `Fault`, also for a member that an order does not have: a misspelt one would be
    ///   ignored.
    package init(
        parsing body: [UInt8], isSaved: Bool = false,
        origin: (AbsoluteURL) -> Entry? = { Entry(url: $0) }
    ) throws(Fault) {
        let json: JSONValue
        do throws(JSONFault) {
            json = try JSONValue(parsing: body)
        } catch {
            throw Fault(description: "the body is no JSON: \(error)")
        }
        if !isSaved, case .object(let given) = json,
            let unknown = given.first(where: { !Self.members.contains($0.name) })
        {
            throw Fault(
                description: "an order has no member \"\(unknown.name.prefix(40))\"; it has "
                    + Self.members.joined(separator: ", "))
        }
        guard case .list(let entries)? = json["entries"] else {
            throw Fault(description: "the order needs a list \"entries\"")
        }
        guard !entries.isEmpty else { throw Fault(description: "\"entries\" is empty") }
        guard entries.count <= Self.mostItems else {
            throw Fault(
                description: "a feed has at most \(Self.mostItems) entries, not \(entries.count)")
        }
        let items = Self.numbered(entries.map { Self.item($0, origin) })
        if let fault = items[0].fault, items.allSatisfy({ $0.entry == nil }) {
            throw Fault(description: "no entry can be asked for; the first: \(fault)")
        }
        self.items = items
        index = try Self.index(json["index"], of: entries.count)
        guard
            let direction = FeedPlanner.Direction(rawValue: json["direction"]?.asText ?? "forward")
        else { throw Fault(description: "\"direction\" is forward or backward") }
        self.direction = direction
        height = try Self.height(json["height"])
        parameters = try Self.parameters(json)
    }

    /// Parses a number as an index into the list.
    private static func index(_ value: JSONValue?, of count: Int) throws(Fault) -> Int {
        guard let value else { return 0 }
        guard case .number(let number) = value, (0..<Int64(count)).contains(number) else {
            throw Fault(description: "\"index\" is 0...\(count - 1), the place of an entry")
        }
        return Int(number)
    }

    private static func height(_ value: JSONValue?) throws(Fault) -> Int? {
        guard let value, value != .null else { return nil }
        guard case .number(let number) = value, (1...100_000).contains(number) else {
            throw Fault(description: "\"height\" is a number of lines, 1 or more")
        }
        return Int(number)
    }

    private static func parameters(_ json: JSONValue) throws(Fault) -> FeedParameters {
        let scheme = json["scheme"]?.asText ?? "default"
        guard var parameters = FeedParameters(named: scheme) else {
            throw Fault(description: "\"scheme\" is default, published or none, not '\(scheme)'")
        }
        guard let given = json["parameters"] else { return parameters }
        guard case .object(let members) = given else {
            throw Fault(description: "\"parameters\" is an object of numbers")
        }
        for member in members {
            let value: Double
            if case .truth(let isTrue) = member.value, member.name == "activeFirst" {
                parameters.activeFirst = isTrue
                continue
            } else if let number = member.value.asNumber {
                value = number
            } else {
                throw Fault(description: "the parameter \(member.name) is a number")
            }
            if let fault = parameters.set(member.name, value) {
                throw Fault(description: "the parameters: \(fault)")
            }
        }
        return parameters
    }

    // MARK: Items

    /// Parses an item; an invalid one affects no other items.
    private static func item(_ value: JSONValue, _ origin: (AbsoluteURL) -> Entry?) -> Item {
        func bad(_ reason: String) -> Item { Item(entry: nil, weight: nil, fault: reason) }
        let text = value.asText ?? value["url"]?.asText
        guard let text else { return bad("an entry is a URL or an object with a \"url\"") }
        let split = PlayerHeaders.split(Array(text.utf8))
        if let fault = split.flatMap({ PlayerHeaders.fault(of: $0.headers) }) { return bad(fault) }
        let url: AbsoluteURL
        do throws(URIError) {
            url = Telemetry.stripped(try AbsoluteURL(given: split?.url ?? Array(text.utf8)))
        } catch {
            return bad("\(error)")
        }
        guard var entry = origin(url) else {
            return bad("the URL of this daemon leads to no URL of an origin")
        }
        var own = split?.headers ?? []
        if let headers = value["headers"] {
            guard case .object(let members) = headers else {
                return bad("\"headers\" is an object of texts")
            }
            guard members.count + own.count <= PlayerHeaders.most else {
                return bad("an entry has at most \(PlayerHeaders.most) headers")
            }
            for member in members {
                guard let value = member.value.asText else {
                    return bad("the header \(member.name.prefix(40)) is no text")
                }
                own.append(Entry.Header(name: member.name, value: value))
            }
            if let fault = PlayerHeaders.fault(of: own, at: "of the entry") { return bad(fault) }
        }
        entry.headers = Self.headers(entry.headers, changedBy: own)
        guard own.isEmpty || entry.headers.count <= PlayerHeaders.most else {
            return bad("an entry has at most \(PlayerHeaders.most) headers")
        }
        guard let weight = value["weight"] else { return Item(entry: entry, weight: nil) }
        guard let number = weight.asNumber, number > 0, number <= 1_000 else {
            return bad("\"weight\" is above 0, at most 1000")
        }
        return Item(entry: entry, weight: number)
    }

    /// Returns the headers of a link with those of its entry, which replace others of their names.
    private static func headers(
        _ linked: [Entry.Header], changedBy own: [Entry.Header]
    ) -> [Entry.Header] {
        func isSameName(_ one: Entry.Header, _ other: Entry.Header) -> Bool {
            ASCII.equalIgnoringCase(one.name, other.name)
        }
        // What both have keeps its place, so that the session is that of the link.
        let kept = linked.filter { header in
            own.allSatisfy { !isSameName($0, header) || $0.value == header.value }
        }
        let added = own.filter { header in
            !kept.contains { isSameName($0, header) && $0.value == header.value }
        }
        return kept + added
    }

    /// Gives equal items the same number, in the order of their first occurrence.
    private static func numbered(_ items: [Item]) -> [Item] {
        struct Sameness: Hashable {
            let entry: Entry?
            /// Invalid items are all distinct.
            let place: Int
        }
        var numbers: [Sameness: Int] = [:]
        return items.enumerated().map { place, item in
            var item = item
            let key = Sameness(entry: item.entry, place: item.entry == nil ? place : -1)
            item.content = numbers[key] ?? numbers.count
            numbers[key] = item.content
            return item
        }
    }
}
