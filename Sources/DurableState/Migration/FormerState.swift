// Imports the state that versions up to 0.4.0 kept in rows of the index and in text files.
//
// Everything is read first, then written in one transaction together with a mark for each place,
// and removed from its place once that transaction is synced. State found in a marked place was
// imported already, by a run that ended before it could remove it. So nothing is lost or
// duplicated, wherever a run ends.
import Logging
import Posix
import Synchronization

/// The content of a former place of state.
struct FormerContent {
    var changes: [StateChange]
    /// The number of entries that are damaged or unknown.
    var leftOut = 0
    /// Removes the entries that were read.
    var remove: () throws -> Void
}

/// A former place of state: the index or a set of text files.
package struct FormerPlace {
    /// The name under which its import is marked.
    let source: String
    /// Reads the content; nil if there is none.
    let read: () throws -> FormerContent?
}

extension StateDatabase {
    /// Imports the state of former places that are not marked yet; blocks.
    ///
    /// - Throws: errors of the file system or SQLite; state that was not imported is left as it
    ///   is.
    package func importFormer(_ places: [FormerPlace]) throws {
        let marked = Set(records(ImportRecord.self).map(\.source))
        var changes: [StateChange] = []
        var removals: [() throws -> Void] = []
        for place in places {
            guard let found = try place.read() else { continue }
            removals.append(found.remove)
            guard !marked.contains(place.source) else { continue }
            let valid = found.changes.filter { $0.values.map($0.slot.table.admits) ?? false }
            let leftOut = found.leftOut + found.changes.count - valid.count
            if leftOut > 0 {
                log.error(
                    "state of an earlier version is damaged or foreign and is ignored",
                    metadata: ["source": "\(place.source)", "left_out": "\(leftOut)"])
            }
            log.notice(
                "moving state of an earlier version into the state database",
                metadata: ["source": "\(place.source)", "records": "\(valid.count)"])
            changes += valid + [StateChange(ImportRecord(source: place.source))]
        }
        if !changes.isEmpty {
            try write(changes)
            for change in changes { forgetContents(of: change.slot.table.name) }
            refusedPins.withLock { $0.subtract(changes.map(\.slot)) }
        }
        // The commit is synced, so the former state is no longer needed.
        for remove in removals { try remove() }
    }
}
