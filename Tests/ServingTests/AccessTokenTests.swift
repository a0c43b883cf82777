import HTTP
@testable import Serving
import Testing

/// The access token as an argument of a request's query.
@Suite struct AccessTokenTests {
    // RFC 3986 section 6.2.2.2.
    @Test(arguments: ["token=a%20b", "tok%65n=a%20b", "%74%6F%6b%65%6e=a%20b"])
    func `the token is found under each spelling of the argument's name`(_ argument: String) {
        let request = RequestHead(method: .get, target: "/a?token=theirs&\(argument)")
        #expect(AccessToken.argumentText(of: request, with: "a b") == argument)
        #expect(AccessToken.argumentText(of: request, with: "ab") == nil)
    }
}
