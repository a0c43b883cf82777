import Glibc
import Posix

/// Progress of a command: one line that is rewritten in place on a terminal, plain lines elsewhere.
struct ProgressLine {
    private let descriptor: CInt
    private let isTerminal: Bool
    private var shown = ""
    private var state = ""
    private var shownAt: Monotonic?

    /// Without a terminal a line comes at most this often, unless the state changes.
    private static let interval = Interval.seconds(10 as Int64)

    init(_ descriptor: CInt = STDERR_FILENO) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
    }

    /// Shows how the work stands.
    ///
    /// - Parameters:
    ///   - text: one line; what a terminal would obey is taken out.
    ///   - state: a word for the state; without a terminal a change of it is told at once.
    mutating func show(_ text: String, state: String) {
        guard isTerminal else { return tell(text, state: state) }
        let line = TerminalText.cut(text, to: Self.width(of: descriptor))
        guard line != shown else { return }
        shown = line
        put("\r\(line)\u{1B}[K")
    }

    /// Ends the line, so that what follows has one of its own.
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
        // Whatever was printed before comes before.
        fflush(nil)
        _ = write(descriptor, text, text.utf8.count)
    }

    /// The columns of a terminal now (TIOCGWINSZ of ioctl_tty(2)); 80 where it does not tell.
    private static func width(of descriptor: CInt) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}

/// Text for a line of a terminal.
enum TerminalText {
    /// As much of a text as fits into a line without reaching its last column, where some terminals
    /// wrap; control characters become blanks.
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

    /// Columns of a character: two for the wide ones of East Asia and for pictures.
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
