import FoundationEssentials

/// The variables that the multivariant playlists of a session have defined (EXT-X-DEFINE).
///
/// Their media playlists import them, and are read after a restart without the multivariant ones.
package struct VariablesRecord: StateRecord, Equatable {
    package static let table = StateTable(
        "variables", mostRows: mostSessions,
        [
            .integer("session", in: 0...0xFFFF_FFFF_FFFF), .text("list", most: 1 << 17),
            .bytes("definitions", most: 1 << 20),
        ])
    package static let mostSessions = 1_024

    package let session: UInt64
    /// The URL of the playlist that the session began with.
    package let list: String
    package let variables: [String: String]

    package init(session: UInt64, list: String, variables: [String: String]) {
        self.session = session
        self.list = list
        self.variables = variables
    }

    /// The variables are JSON: a value comes from a URL's query and may hold any character.
    package var values: [StateValue] {
        let definitions = (try? JSONEncoder().encode(variables)).map { [UInt8]($0) }
        return [.integer(Int64(clamping: session)), .text(list), .bytes(definitions ?? [])]
    }

    package init?(_ row: StateRow) {
        guard
            let variables = try? JSONDecoder().decode(
                [String: String].self, from: Data(row.bytes(2)))
        else { return nil }
        self.init(
            session: UInt64(clamping: row.integer(0)), list: row.text(1), variables: variables)
    }
}
