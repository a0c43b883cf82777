import AccessLogFormat
import CachePolicy
import ScenarioSupport
import Testing

/// The page for users names what the log contains.
extension Stories {
    @Suite(.tags(.crowded)) struct AccessLogPageTests {
        private func page() throws -> String {
            let path = "\(Fixture.repository)/Sources/sluice/sluice.docc/Using/AccessLog.md"
            return String(decoding: try readFile(path), as: UTF8.self)
        }

        @Test func `the page explains each field, in the order of the lines`() throws {
            let page = try page()
            let names = AccessField.allCases.map(\.name)
            #expect(page.contains("\n    \(names.joined(separator: " "))\n"))
            let rows = page.split(separator: "\n").compactMap { line -> String? in
                let cell = line.split(separator: "|").first?.trimmed ?? ""
                return names.contains(cell) && line.hasPrefix("|") ? cell : nil
            }
            #expect(rows == names)
        }

        @Test func `the page explains each reason`() throws {
            let page = try page()
            let tables = page
            let cells = tables.split(separator: "\n").map { line in
                line.split(separator: "|").first.map(String.init) ?? ""
            }
            let named = Set(cells.flatMap { $0.split(separator: "`").map(String.init) })
            for reason in Freshness.StaleReason.allCases {
                #expect(named.contains(reason.rawValue), "\(reason)")
            }
            for reason in Storability.NoStoreReason.allCases {
                #expect(named.contains(reason.rawValue), "\(reason)")
            }
        }
    }
}

extension Substring {
    fileprivate var trimmed: String { String(drop { $0 == " " }.prefix { $0 != " " }) }
}
