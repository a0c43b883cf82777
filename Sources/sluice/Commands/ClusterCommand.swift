import ArgumentParser
import COpenSSL
import CommandSupport
import Glibc
import Model
import Posix

/// `sluice cluster`: what the nodes of a cluster share.
struct ClusterCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cluster",
        abstract: "Make and change the file of keys that the nodes of a cluster share.",
        subcommands: [ClusterKeyCommand.self])
}

/// `sluice cluster key`: makes a file of keys, or takes one step of a change of keys.
struct ClusterKeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Make the file for serve --cluster-key, or change its keys.",
        discussion: """
            Without a flag a new file with one key is made, readable by its owner only. The first key of a \
            file seals sessions in links, each of its keys opens them. To change keys without an error for \
            anybody take three steps, and after each copy the file to all nodes and send them SIGHUP: --add, \
            --promote, and when no link of the former key is played any more, --retire.
            """)

    @Argument(
        help: ArgumentHelp("The file of keys.", valueName: "file"),
        completion: .file())
    var file: String

    @Flag(help: "Append a new key, which opens only.")
    var add = false

    @Flag(help: "Let the last key of the file be the first, which seals.")
    var promote = false

    @Flag(help: "Remove all keys but the first.")
    var retire = false

    func validate() throws {
        guard [add, promote, retire].filter({ $0 }).count <= 1 else {
            throw ValidationError("--add, --promote and --retire are steps: one at a time")
        }
    }

    func run() throws {
        do {
            guard add || promote || retire else { return try make() }
            var keys = try ClusterKeyFile(path: file).keys
            if add {
                guard keys.count < ClusterKeyFile.mostKeys else {
                    throw commandFailure(
                        "\(file) holds \(keys.count) keys, the most; --retire removes all but the first"
                    )
                }
                keys.append(try Self.newKey())
            } else if promote {
                guard keys.count > 1 else {
                    throw commandFailure("\(file) holds one key; --add another first")
                }
                keys.insert(keys.removeLast(), at: 0)
            } else {
                keys.removeSubrange(1...)
            }
            let made = ClusterKeyFile(keys: keys)
            try replaceFile(
                file, with: Array(made.text.utf8), in: parentFolder(of: file), mode: 0o600,
                keepsAccess: true)
            show(keys)
        } catch let error as ExitCode {
            throw error
        } catch {
            throw commandFailure("\(error)")
        }
    }

    /// Makes the file; one that is there may seal links that are being played, and stays.
    private func make() throws {
        let made = ClusterKeyFile(keys: [try Self.newKey()])
        do throws(SystemError) {
            let opened = try openFile(file, flags: O_WRONLY | O_CREAT | O_EXCL)
            try write(Array(made.text.utf8), to: opened.number, at: 0)
            try syncData(opened.number)
        } catch {
            guard error.code == EEXIST else { throw error }
            throw commandFailure(
                "\(file) exists; --add appends a key to it, and a new file takes a new name")
        }
        try syncFolder(parentFolder(of: file))
        show(made.keys)
    }

    private func show(_ keys: [ClusterKey]) {
        let opening = keys.dropFirst().map(\.name).joined(separator: ", ")
        let verb = keys.count > 2 ? "open" : "opens"
        print(
            "\(file): \(keys[0].name) seals" + (opening.isEmpty ? "" : "; \(opening) \(verb) too"))
    }

    private static func newKey() throws -> ClusterKey {
        var secret = [UInt8](repeating: 0, count: ClusterKey.length)
        guard RAND_bytes(&secret, CInt(secret.count)) == 1 else {
            throw commandFailure("the system has no random numbers")
        }
        return ClusterKey(secret: secret)
    }
}
