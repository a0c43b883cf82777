// Moving what versions up to 0.4.0 kept in rows of the index and in text files into the database.
//
// All of it is read first, then written in one transaction with a mark for each place, and removed from
// there once that transaction is on the disk. What is found in a marked place was moved already, by a
// run that ended before it could remove it. So nothing is lost or doubled wherever a run ends.
import Logging
import Posix

/// What was found in a former place of state.
struct FormerContent {
    var changes: [StateChange]
    /// How much of it is damaged or not ours.
    var leftOut = 0
    /// Removes what was read.
    var remove: () throws -> Void

    init(changes: [StateChange], leftOut: Int = 0, remove: @escaping () throws -> Void) {
        self.changes = changes
        self.leftOut = leftOut
        self.remove = remove
    }
}

/// One former place of state.
package struct FormerPlace {
    /// The name of its mark.
    let source: String
    /// Reads what is there; nil where there is nothing.
    let read: () throws -> FormerContent?
}

extension StateDatabase {
    /// Moves what is in former places into the database, where that was not done before; blocks.
    ///
    /// - Throws: what the disk or SQLite says; what was not moved is left as it is.
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
                    "state of an earlier version is damaged or not ours, and is left out",
                    metadata: ["source": "\(place.source)", "left_out": "\(leftOut)"])
            }
            log.notice(
                "moves state of an earlier version into the state database",
                metadata: ["source": "\(place.source)", "records": "\(valid.count)"])
            changes += valid + [StateChange(ImportRecord(source: place.source))]
        }
        if !changes.isEmpty {
            try write(changes)
            for change in changes { forgetContents(of: change.slot.table.name) }
        }
        // A commit is synced, so from here on nothing needs what was moved.
        for remove in removals { try remove() }
    }
}
