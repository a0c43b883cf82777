// The disk of a run: which of the daemon's calls it refuses, and with which errors.
import Glibc

/// Makes calls of the daemon fail that touch its cache folder.
final class FaultyDisk {
    private let world: World
    private let extras: Extras
    /// Errors of calls still to come, the next one first.
    private var errors: [CInt] = []
    /// How many calls were refused.
    private(set) var faults = 0
    /// Whether the next attempt to open a stored file fails, once.
    var failsNextOpen = false

    /// The calls that a disk which takes no writes refuses.
    private static let changes: Set<String> = [
        "write", "fallocate", "ftruncate", "open for writing", "mkdir", "unlink", "rename", "link",
    ]

    init(_ world: World, _ extras: Extras) {
        self.world = world
        self.extras = extras
    }

    /// Has one of the calls to come fail with an error.
    func fail(with error: CInt) { errors.append(error) }

    /// Forgets the errors still to come.
    func calm() { errors = [] }

    /// Returns the error that a call fails with; 0 if it succeeds.
    ///
    /// - Parameters:
    ///   - call: the name of the call.
    ///   - path: the file.
    ///   - random: decides which call takes the next error.
    /// - Returns: the error.
    func error(of call: String, _ path: String, _ random: inout Seeded) -> CInt {
        if failsNextOpen, call.hasPrefix("open"), path.contains("/cache/objects") {
            failsNextOpen = false
            noteFault()
            world.note("disk: \(call) \(path.suffix(40)) fails")
            return EMFILE
        }
        if extras.isReadOnly, path.contains("/cache"), Self.changes.contains(call) {
            noteFault()
            return EROFS
        }
        guard let error = errors.first, path.contains("/cache"), random.chance(30) else {
            return 0
        }
        // Errors that cannot occur on a real system do not occur here.
        let isWrite = ["write", "fallocate", "ftruncate", "open for writing", "mkdir"].contains(
            call)
        switch error {
        case ENOSPC, EDQUOT: if !isWrite { return 0 }
        case EMFILE: if !call.hasPrefix("open") { return 0 }
        default: if path.contains(".sqlite") { return 0 }
        }
        if path.contains(".sqlite"), random.chance(50) { return 0 }
        errors.removeFirst()
        noteFault()
        world.mark("disk: \(call) \(String(cString: strerror(error)))")
        world.note("disk: \(call) \(path.suffix(40)) fails with \(error)")
        return error
    }

    private func noteFault() {
        faults += 1
        world.lastDiskFault = world.now
    }
}
