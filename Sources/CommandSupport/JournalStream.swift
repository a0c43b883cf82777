import Glibc

/// The journal of systemd behind standard error, which takes the priority of a line from its
/// beginning (sd-daemon(3)).
package enum JournalStream {
    /// True if what this process writes to standard error goes to the journal.
    package static let isStandardError = isJournal(
        STDERR_FILENO, variable: getenv("JOURNAL_STREAM").map { String(cString: $0) })

    /// Compares a descriptor with the journal's socket (systemd.exec(5), `$JOURNAL_STREAM`).
    ///
    /// The variable alone does not tell: a redirection keeps it.
    ///
    /// - Parameters:
    ///   - file: the descriptor.
    ///   - variable: device and inode of the journal's socket; nil if nothing goes there.
    /// - Returns: true if the descriptor is the journal's.
    package static func isJournal(_ file: CInt, variable: String?) -> Bool {
        var found = stat()
        guard let variable, fstat(file, &found) == 0 else { return false }
        return variable == "\(found.st_dev):\(found.st_ino)"
    }

    /// Marks each line of a text with a priority.
    ///
    /// - Parameters:
    ///   - text: the lines.
    ///   - priority: one of syslog(3), from 0, an emergency, to 7, for debugging.
    /// - Returns: the text with the priority at the beginning of each line.
    package static func marked(_ text: String, priority: Int) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { "<\(priority)>\($0)" }.joined(separator: "\n")
    }
}
