// The text files in which versions up to 0.4.0 kept state in the cache folder; read once and
// removed.
import Glibc
package import Logging
import Numbers
import Posix

/// The state files of one cache folder.
package struct FormerFiles {
    let folder: String
    let log: Logger

    package init(folder: String, log: Logger) {
        self.folder = folder
        self.log = log
    }

    /// The former places of state in this folder.
    package var places: [FormerPlace] {
        [pins, downloads, recordings, probation, networks, purge]
    }

    // MARK: Reading

    /// Returns the text of a file; nil if it is missing or unreadable, which is logged.
    private func text(_ name: String, atMost limit: Int) -> String? {
        StateFile.read("\(folder)/\(name)", atMost: limit, log).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// Returns the names of a folder's matching plain files, oldest modification first.
    private func names(in part: String, where fits: (String) -> Bool) -> [String] {
        let entries = (try? listFolder("\(folder)/\(part)")) ?? []
        let found = entries.filter { !$0.isFolder && fits($0.name) }.map { entry in
            var status = stat()
            let name = "\(part)/\(entry.name)"
            let isThere = stat("\(folder)/\(name)", &status) == 0
            return (name: name, changed: isThere ? status.st_mtim.tv_sec : 0)
        }
        return found.sorted { ($0.changed, $0.name) < ($1.changed, $1.name) }.map(\.name)
    }

    /// Returns the changes made from files; the removal covers only the files that were read.
    private func content(
        _ names: [String], atMost limit: Int, _ changes: (_ name: String, String) -> [StateChange]?
    ) -> FormerContent? {
        var content = FormerContent(changes: [], remove: {})
        var read: [String] = []
        for name in names {
            guard let text = text(name, atMost: limit) else { continue }
            guard let found = changes(name, text) else {
                log.error(
                    "a state file of an earlier version is damaged and is left in place",
                    metadata: ["path": "\(folder)/\(name)"])
                continue
            }
            content.changes += found
            read.append("\(folder)/\(name)")
        }
        guard !read.isEmpty else { return nil }
        content.remove = { [read] in
            for path in read { try removeFile(path) }
        }
        return content
    }

    /// Returns the lines between a file's first and last one; nil if these are not the expected
    /// ones.
    static func lines(of text: String, first: String) -> ArraySlice<Substring>? {
        let lines = text.split(separator: "\n")
        guard lines.count >= 2, lines[0] == first, lines[lines.count - 1] == "END" else {
            return nil
        }
        return lines.dropFirst().dropLast()
    }

    /// Splits a line at its first blank into name and value.
    static func pair(_ line: Substring) -> (name: Substring, value: String) {
        let name = line.prefix { $0 != " " }
        return (name, String(line.dropFirst(name.count + 1)))
    }

    static func number(_ text: some StringProtocol) -> Int64 {
        ExternalNumber.integer(text, in: 0...Int64(ExternalNumber.largest)) ?? 0
    }

    // MARK: Pins

    /// `pins`: the readable pins of a damaged file are imported, and the file is set aside.
    private var pins: FormerPlace {
        FormerPlace(source: "pins") {
            let path = "\(folder)/pins"
            let bytes: [UInt8]
            do throws(SystemError) {
                bytes = try readStart(path, atMost: 16 << 20)
            } catch {
                guard error.code == ENOENT || error.code == EINVAL else { throw error }
                return nil
            }
            let (pins, isWhole) = FormerPins.parse(String(decoding: bytes, as: UTF8.self))
            guard !isWhole else {
                return FormerContent(changes: pins.map { StateChange($0) }) { try removeFile(path) }
            }
            let aside = "\(path).damaged-\(WallTime.now().seconds)"
            log.error(
                "the file of pins was damaged; its readable entries are used",
                metadata: ["kept": "\(pins.count)", "aside": "\(aside)"])
            return FormerContent(changes: pins.map { StateChange($0) }) {
                try renameFile(path, to: aside)
            }
        }
    }

    // MARK: Downloads

    private var downloads: FormerPlace {
        FormerPlace(source: "downloads") {
            let isTitle = { (name: String) in
                name.utf8.count == 12
                    && ExternalNumber.integer(name, in: 0...UInt64.max, radix: 16) != nil
            }
            let names = names(in: "downloads", where: { $0 == "day" || isTitle($0) })
            return content(names, atMost: 4 << 20) { name, text in
                let name = name.dropFirst("downloads/".count)
                if name == "day" { return FormerDownload.day(text).map { [StateChange($0)] } ?? [] }
                return FormerDownload.record(name, text).map { [StateChange($0)] }
            }
        }
    }

    // MARK: Crashes, networks and purges

    private var probation: FormerPlace {
        FormerPlace(source: "probation") {
            content(["probation"], atMost: 1 << 20) {
                FormerProbation.records($1)?.map { StateChange($0) }
            }
        }
    }

    private var networks: FormerPlace {
        FormerPlace(source: "networks") {
            content(["downloads/networks"], atMost: 32 << 10) {
                FormerNetworks.records($1).map { StateChange($0) }
            }
        }
    }

    /// A damaged purge order is removed; otherwise it would be reported at every start.
    private var purge: FormerPlace {
        FormerPlace(source: "purge") {
            let path = "\(folder)/purge"
            var records: [PurgeRecord]?
            do throws(SystemError) {
                let bytes = try readWhole(path, atMost: 16 << 20)
                records = FormerPurge.records(String(decoding: bytes, as: UTF8.self))
            } catch {
                if error.code == ENOENT { return nil }
            }
            if records == nil {
                log.error(
                    """
                    the order of an unfinished purge is damaged, and is forgotten; purge again what \
                    should be gone
                    """)
            }
            return FormerContent(changes: (records ?? []).map { StateChange($0) }) {
                try removeFile(path)
            }
        }
    }

    // MARK: Recordings

    private var recordings: FormerPlace {
        FormerPlace(source: "recordings") {
            content(names(in: "recordings", where: { !$0.hasSuffix(".new") }), atMost: 1 << 20) {
                FormerRecording.record($1).map { [StateChange($0)] }
            }
        }
    }
}
