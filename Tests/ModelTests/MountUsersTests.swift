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
        #expect(url.authorized(as: users.user(of: url)).text == "https://ann:s3cret@h/x/a?b")
        for other in ["http://mount*%2Fadm%2F@h/x/a", "https://mount*%2Fpub%2F@h/x/a"] {
            let url = try AbsoluteURL(other)
            #expect(users.user(of: url) == nil)
            #expect(url.authorized(as: users.user(of: url)) == url.withoutUserinfo)
        }
        let own = try AbsoluteURL("https://bob:pw@h/x/a")
        #expect(users.user(of: own) == nil && own.authorized(as: nil) == own)
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
        #expect(Signer(secret: "ann:1", origin: "o").sign([1], with: token) != first)
    }

    private func mount(_ text: String, _ headers: [(String, String)]) throws -> Mount {
        var mount = try Mount(text)
        for (name, value) in headers { try mount.add(Entry.Header(name: name, value: value)) }
        return mount
    }

    @Test func `header fields are for URLs with the stand-in at their mount's origin`() throws {
        let users = MountUsers()
        users.replace([try mount("/own/=https://h/x/", [("X-Api-Key", "s3cret")])])
        #expect(users.areGiven)
        let url = try AbsoluteURL("https://mount*%2Fown%2F@h/x/a")
        let user = try #require(users.user(of: url))
        #expect(user.fields(for: url) == ["X-Api-Key": "s3cret"])
        #expect(url.authorized(as: user).text == "https://h/x/a")
        for other in [
            "https://h/x/a", "http://mount*%2Fown%2F@h/x/a", "https://mount*%2Fown%2F@h:8443/x/a",
            "https://mount*%2Fown%2F@other/x/a", "https://mount*%2Fpub%2F@h/x/a",
        ] {
            let url = try AbsoluteURL(other)
            #expect(users.user(of: url) == nil && user.fields(for: url).isEmpty)
        }
        var forwarded: Fields = ["x-api-key": "guess", "Accept": "*/*"]
        user.removeReplaced(from: &forwarded)
        #expect(forwarded == ["Accept": "*/*"])
    }

    @Test func `keys and links depend on user information and all header fields, not their order`()
        throws
    {
        let url = try AbsoluteURL("https://mount*%2Fown%2F@h/a")
        func marks(
            _ text: String, _ headers: [(String, String)]
        ) throws -> (digest: String, mac: [UInt8]) {
            let users = MountUsers()
            users.replace([try mount(text, headers)])
            let (user, signer) = (users.user(of: url), users.signer(of: url))
            return (try #require(user).digest, try #require(signer).sign([1], with: nil))
        }
        let (plain, named) = ("/own/=https://h/", "/own/=https://ann:1@h/")
        let others = [
            try marks(plain, [("A", "1")]), try marks(plain, [("A", "2")]),
            try marks(plain, [("B", "1")]), try marks(plain, [("A", "1"), ("B", "1")]),
            try marks(named, [("A", "1")]), try marks(named, []),
        ]
        #expect(Set(others.map(\.digest)).count == others.count)
        #expect(Set(others.map(\.mac)).count == others.count)
        let turned = try marks(plain, [("b", "1"), ("A", "1")])
        #expect(turned.digest == others[3].digest && turned.mac == others[3].mac)
    }

    @Test func `a reload changes what a stand-in means`() throws {
        let users = MountUsers()
        let url = try AbsoluteURL("https://mount*%2Fadm%2F@h/a")
        for user in ["ann:1", "ann:2"] {
            users.replace([try Mount("/adm/=https://\(user)@h/")])
            #expect(url.authorized(as: users.user(of: url)).text == "https://\(user)@h/a")
        }
        users.replace([])
        #expect(url.authorized(as: users.user(of: url)).text == "https://h/a")
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
