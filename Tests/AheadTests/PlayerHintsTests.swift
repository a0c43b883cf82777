import Ahead
import HTTP
import Lookahead
import Testing

/// Where the hints of players (CMCD) are found in requests.
@Suite struct PlayerHintsTests {
    private func hints(_ target: String, _ fields: Fields = [:]) -> PlayerHints? {
        PlayerHints.sent(in: RequestHead(method: .get, target: target, fields: fields))
    }

    @Test func `hints are parsed from every field of CMCD`() throws {
        let found = try #require(
            hints(
                "/s/a.ts",
                [
                    "cmcd-request": "bl=2100,mtp=25400", "CMCD-Status": "bs",
                    "CMCD-Object": "br=3200", "CMCD-Session": "sid=\"a\"",
                ]))
        #expect(found.bufferSeconds == 2.1 && found.throughput == 25_400_000)
        #expect(found.hasStalled && found.bitRate == 3_200_000 && found.playback == "a")
    }

    @Test func `hints are parsed from the query`() throws {
        let found = try #require(hints("/s/a.ts?x=1&CMCD=bl%3D2100%2Cbs%2Csid%3D%22a%2Cb%22"))
        #expect(found.bufferSeconds == 2.1 && found.hasStalled && found.playback == "a,b")
    }

    @Test(arguments: ["/s/a.ts", "/s/a.ts?bl=2100", "/s/CMCD=bl", "/s/a.ts?XCMCD=bl%3D2100"])
    func `a request without CMCD has no hints`(target: String) {
        #expect(hints(target, ["Range": "bytes=0-1", "Content-Type": "bs"]) == nil)
    }
}
