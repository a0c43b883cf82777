// Keeps root out of the stores of other users.
import Glibc
package import Posix

/// The user to whom a cache folder belongs.
package struct FolderOwner {
    private let name: String
    /// The argument that names the user for sudo.
    package let argument: String

    package init(_ id: UInt32) {
        let known = getpwuid(id).flatMap { $0.pointee.pw_name.map { String(cString: $0) } }
        name = known ?? String(id)
        argument = known ?? "#\(id)"
    }

    /// Returns the user of a store that this process must not open, since it is root and that user
    /// is not: the files that root makes there would keep that user's daemon from starting.
    ///
    /// Nothing is against it where root's files come to belong to that user too, as on a network
    /// file system. Blocks on the disk.
    ///
    /// - Parameters:
    ///   - folder: the cache folder.
    ///   - unnamed: opens a file without a name, which not all file systems can.
    package init?(
        keepingRootOutOf folder: String,
        unnamed: (String) throws(SystemError) -> OwnedDescriptor = openUnnamedFile(in:)
    ) {
        let objects = "\(folder)/objects"
        var found = stat()
        guard geteuid() == 0, stat(objects, &found) == 0, found.st_uid != 0 else { return nil }
        var made = stat()
        let name = "owner-\(getpid())"
        guard let file = try? openNamelessFile(in: objects, name: name, unnamed: unnamed),
            fstat(file.number, &made) == 0, made.st_uid == 0
        else { return nil }
        self.init(found.st_uid)
    }

    /// Why this process does not open a store of the user, and what to do.
    package func refusal(of folder: String) -> String {
        """
        the store \(folder) belongs to the user \(name); run this as that user, for example with \
        sudo -u \(argument), or give it to root with chown -R root
        """
    }
}
