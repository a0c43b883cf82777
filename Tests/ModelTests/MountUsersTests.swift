import Routing
import Testing
import URISyntax

@testable import Model

/// What stand-ins for the user information of mounts mean.
@Suite struct MountUsersTests {
    @Test func `a stand-in is replaced for the origin of its mount only`() throws {
        let users = MountUsers()
        users.replace([
            try Mount("/adm/=https://ann:s3cret@h/x/"), try Mount("/pub/=https://h/x/"),
        ])
        let url = try AbsoluteURL("https://mount*%2Fadm%2F@h/x/a?b")
        #expect(users.userinfo(of: url) == "ann:s3cret")
        #expect(users.authorized(url).text == "https://ann:s3cret@h/x/a?b")
        for other in ["http://mount*%2Fadm%2F@h/x/a", "https://mount*%2Fpub%2F@h/x/a"] {
            let url = try AbsoluteURL(other)
            #expect(users.userinfo(of: url) == nil)
            #expect(users.authorized(url) == url.withoutUserinfo)
        }
        let own = try AbsoluteURL("https://bob:pw@h/x/a")
        #expect(users.userinfo(of: own) == "bob:pw" && users.authorized(own) == own)
    }

    @Test func `links are signed with what the user information of the mount says`() throws {
        let url = try AbsoluteURL("https://mount*%2Fadm%2F@h/a")
        func mac(_ mount: String, of url: AbsoluteURL) throws -> [UInt8]? {
            let users = MountUsers()
            users.replace([try Mount(mount)])
            return users.signer(of: url)?.sign([1], with: nil)
        }
        let first = try #require(try mac("/adm/=https://ann:1@h/x/", of: url))
        #expect(try mac("/adm/=https://ann:1@h/y/", of: url) == first)
        #expect(try mac("/adm/=https://ann:2@h/x/", of: url) != first)
        #expect(try mac("/adm/=https://ann:1@other/x/", of: url) == nil)
        #expect(try mac("/adm/=https://ann:1@h/x/", of: url.withoutUserinfo) == nil)
        let token = Signer(token: "t")
        #expect(Signer(userinfo: "ann:1", origin: "o").sign([1], with: token) != first)
    }

    @Test func `a reload changes what a stand-in means`() throws {
        let users = MountUsers()
        let url = try AbsoluteURL("https://mount*%2Fadm%2F@h/a")
        for user in ["ann:1", "ann:2"] {
            users.replace([try Mount("/adm/=https://\(user)@h/")])
            #expect(users.userinfo(of: url) == user)
        }
        users.replace([])
        #expect(users.authorized(url).text == "https://h/a")
    }
}
