import Glibc
import Posix

/// The progress of a command: one line that is rewritten in place on a terminal, plain lines
/// elsewhere.
struct ProgressLine {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private var shown = ""
    private var state = ""
    private var shownAt: Monotonic?

    /// Without a terminal, lines are printed at most this often, unless the state changes.
    private static let interval = Interval.seconds(10 as Int64)

    /// Shows the progress.
    ///
    /// - Parameters:
    ///   - text: one line; control characters are replaced.
    ///   - state: a word for the state; without a terminal, a change is printed immediately.
    mutating func show(_ text: String, state: String) {
        guard isTerminal else { return tell(text, state: state) }
        let line = TerminalText.cut(text, to: Self.width())
        guard line != shown else { return }
        shown = line
        put("\r\(line)\u{1B}[K")
    }

    /// Ends the line, so that later output starts on a new one.
    mutating func finish() {
        guard isTerminal, !shown.isEmpty else { return }
        shown = ""
        put("\n")
    }

    private mutating func tell(_ text: String, state: String) {
        let now = Monotonic.now()
        let isDue = shownAt.map { now - $0 >= Self.interval } ?? true
        guard text != shown, isDue || state != self.state else { return }
        (shown, self.state, shownAt) = (text, state, now)
        put(TerminalText.cut(text, to: .max) + "\n")
    }

    private func put(_ text: String) {
        // Earlier output must appear first.
        fflush(nil)
        _ = write(STDERR_FILENO, text, text.utf8.count)
    }

    /// Returns the current columns of a terminal (TIOCGWINSZ of ioctl_tty(2)); 80 if unknown.
    private static func width() -> Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}

/// Prepares text for a line of a terminal.
enum TerminalText {
    /// Returns as much of a text as fits into a line without reaching its last column, where some
    /// terminals wrap; control characters become blanks.
    static func cut(_ text: String, to columns: Int) -> String {
        var room = max(0, columns - 1)
        var line = ""
        for character in text {
            let shown = character.unicodeScalars.contains { isControl($0) } ? " " : character
            let width = width(of: shown)
            guard width <= room else { break }
            room -= width
            line.append(shown)
        }
        return line
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control
            || scalar.properties.generalCategory == .format
    }

    /// Returns the columns of a character: two for wide East Asian characters and for pictographs.
    private static func width(of character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}
