// Keeps root out of the stores of other users.
import Glibc
package import Posix

/// The user to whom a cache folder belongs.
package struct FolderOwner {
    /// The user's name, or number without one; chown takes both.
    private let name: String
    /// True if a daemon of this user may start on this system.
    private let mayRunDaemon: Bool
    /// The argument that names the user for sudo.
    package let argument: String

    package init(_ id: UInt32) {
        let known = Self.name(of: id)
        name = known ?? String(id)
        mayRunDaemon = Self.mayRunDaemon(known)
        argument = known ?? "#\(id)"
    }

    /// Returns the name of a user; nil if it has none here.
    private static func name(of id: UInt32) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { text -> String? in
            guard let start = text.baseAddress else { return nil }
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard getpwuid_r(id, &entry, start, text.count, &found) == 0, found != nil else {
                return nil
            }
            return entry.pw_name.map { String(cString: $0) }
        }
    }

    /// Returns the user of a cache folder that this process must not open, since it is root and
    /// that user is not: the files that root makes there, even in an empty folder, would keep that
    /// user's daemon from starting.
    ///
    /// Nothing is against it where root's files come to belong to that user too, as on a network
    /// file system, nor where the folder has no store and its owner is no user of this system.
    /// Blocks on the disk.
    ///
    /// - Parameters:
    ///   - folder: the cache folder.
    ///   - unnamed: opens a file without a name, which not all file systems can.
    package init?(
        keepingRootOutOf folder: String,
        unnamed: (String) throws(SystemError) -> OwnedDescriptor = openUnnamedFile(in:)
    ) {
        guard geteuid() == 0, let (owned, user) = Self.owned(folder), user != 0,
            owned != folder || Self.mayRunDaemon(Self.name(of: user))
        else { return nil }
        var made = stat()
        let name = "owner-\(getpid())"
        guard let file = try? openNamelessFile(in: owned, name: name, unnamed: unnamed),
            fstat(file.number, &made) == 0, made.st_uid == 0
        else { return nil }
        self.init(user)
    }

    /// True if a daemon of the owner of a folder without a store may start on this system.
    ///
    /// The owner of a folder of the host, as a container sees it, mostly has no name there, or is
    /// `nobody` if the container's user namespace does not map it.
    ///
    /// - Parameter name: the name of the owner; nil if it has none.
    /// - Returns: false if root may take the folder.
    static func mayRunDaemon(_ name: String?) -> Bool { name.map { $0 != "nobody" } ?? false }

    /// Finds what tells the owner of a cache folder: its folder of objects, or itself if there is
    /// none or it cannot be reached.
    ///
    /// - Returns: its path and its owner; nil if there is no cache folder.
    private static func owned(_ folder: String) -> (path: String, user: UInt32)? {
        for path in ["\(folder)/objects", folder] {
            var found = stat()
            if stat(path, &found) == 0 { return (path, found.st_uid) }
        }
        return nil
    }

    /// What to do about a cache folder that this user has no permission to use.
    package static func advice(withoutAccessTo folder: String) -> String {
        guard let user = owned(folder)?.user else {
            return "name a folder that this user may create with --cache-dir"
        }
        let change = adviceToTake(folder)
        // Root would be kept out of the folder of a service, of which only parts are root's.
        guard user != geteuid(), user != 0 else { return change }
        return "\(change), or run this as its owner with sudo -u \(FolderOwner(user).argument)"
    }

    /// Looks for a database or another file in a cache folder that this user has no permission to
    /// write, such as after a restore; blocks on the disk.
    ///
    /// - Parameters:
    ///   - folder: the cache folder.
    ///   - mayWrite: returns true if this user may read and write a file.
    /// - Returns: what to do about the first one; nil if there is none.
    package static func advice(
        aboutFilesIn folder: String,
        mayWrite: (String) -> Bool = { access($0, R_OK | W_OK) == 0 }
    ) -> String? {
        for entry in ((try? listFolder(folder)) ?? []).sorted(by: { $0.name < $1.name }) {
            let path = "\(folder)/\(entry.name)"
            var found = stat()
            guard !entry.isFolder, !mayWrite(path), lstat(path, &found) == 0 else { continue }
            let user = found.st_uid
            return user == geteuid()
                ? "let this user write to \(path) with chmod u+rw \(path)"
                : "\(path) belongs to the user \(FolderOwner(user).name); \(adviceToTake(folder))"
        }
        return nil
    }

    private static func adviceToTake(_ folder: String) -> String {
        let user = FolderOwner(geteuid()).name
        return "give \(folder) to this user with sudo chown -R \(user) \(folder)"
    }

    /// Why this process does not open a cache folder of the user, and what to do.
    package func refusal(of folder: String) -> String {
        // Root would take the folder from that user's daemon.
        let change = mayRunDaemon ? "" : ", or give it to root with chown -R root"
        return """
            the cache folder \(folder) belongs to the user \(name); run this as that user, for \
            example with sudo -u \(argument)\(change)
            """
    }
}
