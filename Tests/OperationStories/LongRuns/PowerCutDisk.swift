import FixtureCDN
import Glibc
import ScenarioSupport

/// A model of the disk states that are possible after a power cut at some point of a log.
///
/// Bytes that were written before a completed fsync(2) or fdatasync(2) of their file began are
/// present. Of every other sector of 512 bytes the disk holds any one of its versions since then,
/// so that writes may be missing, torn and reordered; so is a file's size, independently: a file
/// may have grown while its bytes are still zeros. Names follow one of two models, chosen at
/// random. A *journal* (ext4, XFS): changes of names become durable in their order, and every sync
/// includes all earlier ones. *Reordered* (what POSIX allows): the names of each folder
/// independently, durable once that folder was synced; a rename between two folders may be visible
/// in both or in neither. syncfs(2) makes everything durable.
struct PowerCutDisk {
    private static let sector = 512

    /// The share of unsynced changes that is kept.
    private enum Style: CaseIterable { case nothing, everything, byFile, byPage, bySector }

    private struct File {
        /// The records that changed it, in order.
        var changes: [Int] = []
        /// Records before this one are on the disk.
        var syncedTo = 0
    }

    private struct NameChange {
        let at: Int
        let path: String
        /// The file that the name refers to from then on; nil if it was removed.
        let file: Int?
        var isFolder = false
        /// The folder whose names it changes.
        var folder: String { String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.endIndex)) }
    }

    private let log: DiskLog
    private let cut: Int
    private var files: [File] = []
    private var names: [NameChange] = []
    private var foldersSyncedTo: [String: Int] = [:]
    private var everythingSyncedTo = 0
    private var journalSyncedTo = 0

    /// The disk after the first `cut` records of a log.
    init(_ log: DiskLog, cut: Int) {
        self.log = log
        self.cut = cut
        var fileOfInode: [UInt64: Int] = [:]
        var fileOfName: [String: Int] = [:]
        var begun: [Int: Int] = [:]
        for (at, record) in log.records[..<cut].enumerated() {
            let paths = record.kind.hasPaths ? log.paths(record) : []
            switch record.kind {
            case .create:
                fileOfInode[record.inode] = files.count
                fileOfName[paths[0]] = files.count
                names.append(NameChange(at: at, path: paths[0], file: files.count))
                files.append(File())
            case .write, .truncate, .punch:
                if let file = fileOfInode[record.inode] { files[file].changes.append(at) }
            case .syncBegin, .folderBegin, .allBegin: begun[record.offset] = at
            case .syncEnd:
                noteSync(begun[record.offset] ?? 0, file: fileOfInode[record.inode])
            case .folderEnd:
                foldersSyncedTo[paths[0]] = begun[record.offset] ?? 0
                noteSync(begun[record.offset] ?? 0, file: nil)
            case .allEnd:
                everythingSyncedTo = begun[record.offset] ?? 0
                noteSync(everythingSyncedTo, file: nil)
            case .rename, .link:
                let file = fileOfName[paths[0]]
                fileOfName[paths[1]] = file
                names.append(NameChange(at: at, path: paths[1], file: file))
                guard record.kind == .rename else { continue }
                fileOfName[paths[0]] = nil
                names.append(NameChange(at: at, path: paths[0], file: nil))
            case .unlink:
                fileOfName[paths[0]] = nil
                names.append(NameChange(at: at, path: paths[0], file: nil))
            case .makeFolder:
                names.append(NameChange(at: at, path: paths[0], file: nil, isFolder: true))
            case .unknown: continue
            }
        }
    }

    private mutating func noteSync(_ beginning: Int, file: Int?) {
        journalSyncedTo = max(journalSyncedTo, beginning)
        if let file { files[file].syncedTo = max(files[file].syncedTo, beginning) }
    }

    // MARK: Making one

    /// Writes one of the possible disks; `from` is the recorded folder.
    func write(to folder: String, from root: String, _ dice: inout SeededDice) throws -> String {
        let isJournaled = dice.oneIn(2)
        let style = Style.allCases[dice.roll(Style.allCases.count)]
        let journalCut = pick(journalSyncedTo, &dice)
        var folderCuts: [String: Int] = [:]
        var found: [String: NameChange] = [:]
        for change in names {
            let synced = max(foldersSyncedTo[change.folder] ?? 0, everythingSyncedTo)
            if folderCuts[change.folder] == nil {
                folderCuts[change.folder] = isJournaled ? journalCut : pick(synced, &dice)
            }
            if change.at < folderCuts[change.folder] ?? 0 { found[change.path] = change }
        }
        for change in found.values.sorted(by: { $0.path < $1.path }) {
            let path = folder + change.path.dropFirst(root.count)
            if change.isFolder {
                mkdir(path, 0o700)
            } else if let file = change.file {
                // A file without its folder is lost.
                guard access(parent(of: path), F_OK) == 0 else { continue }
                try writeFile(path, content(of: file, style, seed: dice.next()))
                chmod(path, 0o600)
            }
        }
        return "\(isJournaled ? "journal" : "reordered"), \(style), after record \(cut)"
    }

    private func parent(of path: String) -> String {
        String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.endIndex))
    }

    /// A point between the last sync and the cut, often one of the two.
    private func pick(_ synced: Int, _ dice: inout SeededDice) -> Int {
        switch dice.roll(3) {
        case 0: synced
        case 1: cut
        default: synced + dice.roll(cut - synced + 1)
        }
    }

    /// A possible content of a file.
    private func content(of number: Int, _ style: Style, seed: UInt64) -> [UInt8] {
        let file = files[number]
        let synced = max(file.syncedTo, everythingSyncedTo)
        var dice = SeededDice(seed, number)
        let fileCut = style == .everything ? cut : style == .nothing ? synced : pick(synced, &dice)
        let sizeCut = style == .byPage || style == .bySector ? pick(synced, &dice) : fileCut
        /// The record up to which the changes of a sector are on the disk.
        func sectorCut(_ sector: Int) -> Int {
            switch style {
            case .nothing, .everything, .byFile: return fileCut
            case .byPage, .bySector:
                var dice = SeededDice(seed, style == .byPage ? sector / 8 : sector)
                return pick(synced, &dice)
            }
        }
        var content = GrowingBytes()
        var size = 0
        for at in file.changes {
            let record = log.records[at]
            let end = record.kind == .write ? record.offset + record.payload.count : 0
            if record.kind == .write {
                content.grow(to: end)
                each(sectorOf: record.offset..<end) { sector, part in
                    guard at < synced || at < sectorCut(sector) else { return }
                    let start = record.payload.lowerBound + part.lowerBound - record.offset
                    content.set(part, log.bytes[start..<start + part.count])
                }
                if at < synced || at < sizeCut { size = max(size, end) }
            } else {
                let isCut = record.kind == .truncate
                let first = isCut ? record.length : record.offset
                let last = isCut ? content.bytes.count : record.offset + record.length
                each(sectorOf: first..<max(first, min(last, content.bytes.count))) { sector, part in
                    if at < synced || at < sectorCut(sector) { content.clear(part) }
                }
                if isCut, at < synced || at < sizeCut { size = record.length }
            }
        }
        content.grow(to: size)
        return Array(content.bytes[..<size])
    }

    private func each(sectorOf range: Range<Int>, _ body: (Int, Range<Int>) -> Void) {
        var start = range.lowerBound
        while start < range.upperBound {
            let end = min(range.upperBound, (start / Self.sector + 1) * Self.sector)
            body(start / Self.sector, start..<end)
            start = end
        }
    }
}

extension DiskRecord.Kind {
    fileprivate var hasPaths: Bool {
        switch self {
        case .create, .rename, .unlink, .makeFolder, .folderBegin, .folderEnd, .link: true
        default: false
        }
    }
}

/// Bytes that are zero until they are set; fast in a debug build, too.
private struct GrowingBytes {
    var bytes: [UInt8] = []

    mutating func grow(to count: Int) {
        if count > bytes.count { bytes += [UInt8](repeating: 0, count: count - bytes.count) }
    }

    mutating func set(_ range: Range<Int>, _ new: ArraySlice<UInt8>) {
        bytes.withUnsafeMutableBytes { bytes in
            new.withUnsafeBytes { new in
                UnsafeMutableRawBufferPointer(rebasing: bytes[range]).copyMemory(from: new)
            }
        }
    }

    mutating func clear(_ range: Range<Int>) {
        bytes.withUnsafeMutableBytes { bytes in
            for index in range { bytes[index] = 0 }
        }
    }
}
