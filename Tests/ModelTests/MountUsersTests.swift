import CachePolicy
import HLS
import HTTP
import Logging
import Posix
import Routing
import Store
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
        #expect(users.authorized(url).text == "https://ann:s3cret@h/x/a?b")
        for other in ["http://mount*%2Fadm%2F@h/x/a", "https://mount*%2Fpub%2F@h/x/a"] {
            let url = try AbsoluteURL(other)
            #expect(users.user(of: url) == nil)
            #expect(users.authorized(url) == url.withoutUserinfo)
        }
        let own = try AbsoluteURL("https://bob:pw@h/x/a")
        #expect(users.user(of: own) == nil && users.authorized(own) == own)
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
            #expect(users.authorized(url).text == "https://\(user)@h/a")
        }
        users.replace([])
        #expect(users.authorized(url).text == "https://h/a")
    }

    @Test func `a resource is requested as the user in its key, whatever a reload changes`()
        throws
    {
        let folder = try makeTemporaryFolder("mount-users")
        defer { removeTree(folder) }
        let store = try ObjectStore(
            folder: folder,
            configuration: StoreConfiguration(budgetBytes: 1 << 40, minFreeBytes: 0),
            log: Logger(label: "mount-users") { _ in SwiftLogNoOpLogHandler() })
        defer { store.close() }
        let counters = Counters()
        let keys = KeyTable(settings: KeySettings(), database: store.state, counters: counters)
        let names = ResourceNames(
            keys: keys, live: LiveMemory(database: store.state, counters: counters, now: .now()),
            store: store, addresses: OwnAddresses(hostNames: []))
        let url = try AbsoluteURL("https://mount*%2Fadm%2F@h/l.m3u8")
        func list() -> Resource {
            names.resource(
                url, Session(startingAt: url), role: .playlist, forwarding: Fields())
        }
        func sent(_ resource: Resource) -> String {
            resource.url.authorized(as: resource.mountUser).text
        }
        var made: [Resource] = []
        for user in ["ann:1", "ann:2"] {
            keys.mountUsers.replace([try Mount("/adm/=https://\(user)@h/")])
            made.append(list())
        }
        keys.mountUsers.replace([])
        made.append(list())
        #expect(
            made.map(sent) == [
                "https://ann:1@h/l.m3u8", "https://ann:2@h/l.m3u8", "https://h/l.m3u8",
            ])
        #expect(Set(made.map(\.key)).count == 3)
        #expect(made.map { keys.user(of: $0) } == made.map { $0.mountUser?.digest })
        // The rest of a request may be found at another URL; elsewhere, the user is nobody's.
        let next = try AbsoluteURL("https://mount*%2Fadm%2F@h/next.m3u8")
        #expect(sent(names.resource(made[0], movedTo: next)) == "https://ann:1@h/next.m3u8")
        let other = try AbsoluteURL("https://mount*%2Fadm%2F@other/next.m3u8")
        #expect(sent(names.resource(made[0], movedTo: other)) == "https://other/next.m3u8")
        #expect(sent(made[0].changing { $0.url = other }) == "https://other/next.m3u8")
    }
}
