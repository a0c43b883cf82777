// The outages of the last day.
package import Model

/// Times in which origins did not answer.
///
/// Without I/O: outages and time are parameters. At most 200 outages of the last day, about 60 kB
/// as text.
package struct OutageHistory: Equatable, Sendable {
    package struct Outage: Equatable, Sendable {
        package let origin: String
        /// Seconds since 1970.
        package let start: Int64
        /// Seconds since 1970; nil while it lasts.
        package let end: Int64?
        /// The last error of the origin.
        package let reason: String
        /// True if it lasted when it was written, at its end: a restart cut it off.
        package let isCut: Bool

        package init(
            origin: String, start: Int64, end: Int64?, reason: String, isCut: Bool = false
        ) {
            self.origin = String(origin.prefix(300))
            self.start = start
            self.end = end
            self.reason = String(reason.prefix(200))
            self.isCut = isCut
        }
    }

    private static let most = 200
    private static let day: Int64 = 86_400
    /// The most seconds from the end of an outage that was cut off to the next of the same origin,
    /// if that is the same one: the file may be as old as that when a daemon is killed.
    private static let gap: Int64 = 300

    private(set) var outages: [Outage] = []

    package init() {}

    /// Adds an outage that has ended, and forgets what ended a day before `now`.
    package mutating func add(_ outage: Outage, now: Int64) {
        append(outage)
        forget(now: now)
    }

    /// Appends an outage, joined with the one that a restart cut off from it.
    private mutating func append(_ outage: Outage) {
        let cut = outages.lastIndex { former in
            former.isCut && former.origin == outage.origin
                && outage.start - (former.end ?? outage.start) <= Self.gap
        }
        guard let cut else { return outages.append(outage) }
        let start = min(outages.remove(at: cut).start, outage.start)
        outages.append(
            Outage(
                origin: outage.origin, start: start, end: outage.end, reason: outage.reason,
                isCut: outage.isCut))
    }

    private mutating func forget(now: Int64) {
        outages.removeAll { ($0.end ?? now) < now - Self.day }
        if outages.count > Self.most { outages.removeFirst(outages.count - Self.most) }
    }

    // MARK: As JSON

    /// Returns the outages in the order in which they ended, followed by those that last.
    package func json(lasting: [Outage] = []) -> JSONValue {
        var all = self
        for outage in lasting.prefix(Self.most) { all.append(outage) }
        return .list(
            all.outages.map { outage in
                .object([
                    .init("origin", .text(outage.origin)), .init("start", .number(outage.start)),
                    .init("end", .optional(outage.end)), .init("reason", .text(outage.reason)),
                    .init("cut", .truth(outage.isCut)),
                ])
            })
    }

    /// Parses the member `outages` of the history's file; invalid parts are left out.
    ///
    /// - Parameters:
    ///   - text: any bytes.
    ///   - now: seconds since 1970; outages that end later, and old ones, are left out.
    package init(reading text: [UInt8], now: Int64) {
        guard let value = try? JSONValue(parsing: text), value["v"]?.asNumber == 1 else { return }
        for item in (value["outages"]?.asList ?? []).suffix(Self.most) {
            guard case .text(let origin)? = item["origin"],
                case .text(let reason)? = item["reason"],
                let start = item["start"]?.asNumber, let end = item["end"]?.asNumber,
                start >= 0, start <= end, end <= Double(now)
            else { continue }
            add(
                Outage(
                    origin: origin, start: Int64(start), end: Int64(end), reason: reason,
                    isCut: item["cut"] == .truth(true)),
                now: now)
        }
    }
}
