import HTTP
import Numbers
package import Posix

/// The decoded arguments of a request's query; the first of several with the same name counts.
package struct AdministrationQuery {
    private let items: [QueryItem]

    package init(_ query: String) {
        items = QueryItem.items(of: query)
    }

    package subscript(name: String) -> String? {
        items.first { $0.rawName == name }?.value()
    }

    /// Returns a number within a range; the default if absent, nil if invalid.
    package func number(_ name: String, in range: ClosedRange<Int>, default standard: Int) -> Int? {
        guard let text = self[name] else { return standard }
        return ExternalNumber.integer(text, in: range)
    }

    /// Parses a duration: a whole number followed by s, m, h, d or w; nil for anything else.
    package static func duration(_ text: String) -> Interval? {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800]
        guard let unit = text.last.flatMap({ units[$0] }),
            let count = ExternalNumber.integer(text.dropLast(), in: 0...Int64(100_000))
        else { return nil }
        return .seconds(count * unit)
    }
}
