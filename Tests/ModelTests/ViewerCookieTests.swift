@testable import Model
import Posix
import Testing
import URISyntax

/// Which cookies may identify a viewer to the application that makes playlists.
@Suite struct `Viewers' cookies` {
    private let now = WallTime(seconds: 1_800_000_000)

    private func identifies(_ fields: [String]) throws -> Bool {
        let url = try AbsoluteURL("https://cdn.example.com/m")
        return fields.contains { ViewerCookie.isSet(by: $0, from: url, now: now) }
    }

    @Test(arguments: [
        ["sid=1; Path=/"], ["JSESSIONID=a.b; HttpOnly"], ["AWSALB=x", "sid=1"],
        [" sid = 1; Domain=example.com; Max-Age=60"],
    ])
    func `an application's cookie identifies`(fields: [String]) throws {
        #expect(try identifies(fields))
    }

    @Test(arguments: [
        [], ["AWSALB=x; Path=/"], ["AWSALBAPP-0=_remove_"], ["__cf_bm=x; Secure"],
        ["incap_ses_7_8=x", "visid_incap_8=y", "nlbi_8=z"], ["CloudFront-Policy=x"],
        ["__hdnea__=st=1~exp=2~hmac=a; path=/"], ["BIGipServerpool=1.2.3"],
        // Removals, and what a jar does not accept.
        ["sid=; Max-Age=0"], ["sid=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT"],
        ["sid=1; Domain=other.example"], ["no cookie"], [""],
    ])
    func `cookies of infrastructure, and removals, do not`(fields: [String]) throws {
        #expect(try !identifies(fields))
    }

    @Test(arguments: [
        ("sid=1", true), ("AWSALB=x; sid=1", true), ("awsalb=x;__cf_bm=y", false), ("", false),
        (" ; ", false),
    ])
    func `a request's field is judged by its names`(field: String, isAny: Bool) {
        #expect(ViewerCookie.isAny(in: field) == isAny)
    }
}
