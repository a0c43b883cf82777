@testable import HLS
import Testing
import URISyntax

/// What players get of the definitions of a playlist.
@Suite struct PlaylistVariablesTests {
    private static func define(
        _ attributes: String, line: Int = 1, _ reading: PlaylistReading = PlaylistReading(),
        in variables: inout PlaylistVariables
    ) throws -> PlaylistVariables.Form {
        try variables.define(
            AttributeList(attributes), at: line,
            of: AbsoluteURL("https://cdn.example.com/l.m3u8?token=t%2Bk"), reading)
    }

    @Test func `a name with a value and a known import stay as written`() throws {
        var variables = PlaylistVariables()
        let named = try Self.define(#"NAME="a",VALUE="x""#, in: &variables)
        let imported = try Self.define(
            #"IMPORT="b""#, PlaylistReading(variables: ["b": "y"]), in: &variables)
        #expect(named == .asWritten && imported == .asWritten)
        #expect(variables.values == ["a": "x", "b": "y"])
    }

    @Test func `a query parameter is replaced by its value`() throws {
        var variables = PlaylistVariables()
        let form = try Self.define(#"QUERYPARAM="token""#, in: &variables)
        #expect(form == .replaced(name: "token", value: "t+k"))
        #expect(variables.values == ["token": "t+k"])
    }

    @Test func `an import that the multivariant playlist does not define is an error`() throws {
        var variables = PlaylistVariables()
        let form = try Self.define(#"IMPORT="b""#, in: &variables)
        #expect(form == .asWritten)
        var reading = PlaylistReading()
        reading.knowsMultivariant = true
        #expect(throws: PlaylistError.missingImport(line: 2, name: "b")) {
            try Self.define(#"IMPORT="b""#, line: 2, reading, in: &variables)
        }
        #expect(variables.values.isEmpty)
    }

    @Test func `a definition without a name stays as written`() throws {
        var variables = PlaylistVariables()
        let form = try Self.define(#"VALUE="x""#, in: &variables)
        #expect(form == .asWritten)
    }
}
