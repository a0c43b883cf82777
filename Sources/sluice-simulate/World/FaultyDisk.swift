// The disk of a run: which of the daemon's calls it refuses, and with which errors.
import CSimulation
import Glibc

/// Makes calls of the daemon fail, or take long, that touch its cache folder.
final class FaultyDisk {
    private let world: World
    /// Errors of calls still to come, the next one first.
    private var errors: [CInt] = []
    /// How many calls were refused, and how often `countFaults` found the disk bad.
    private var faults = 0
    private var isFull = false
    private var isReadOnly = false
    /// Whether the next attempt to open a stored file fails, once.
    var failsNextOpen = false

    /// The calls that a disk which takes no writes refuses.
    private static let changes: Set<String> = [
        "write", "fallocate", "ftruncate", "open for writing", "mkdir", "unlink", "rename", "link",
    ]

    init(_ world: World) { self.world = world }

    /// Has one of the calls to come fail with an error.
    func fail(with error: CInt) { errors.append(error) }

    /// Leaves so many bytes free for a while.
    func fill(leaving room: Int, for span: Int64) {
        csim_disk_set_free(Int64(room))
        isFull = true
        noteState("\(room) bytes are free")
        world.after(span) { [self] in empty() }
    }

    private func empty() {
        guard isFull else { return }
        isFull = false
        noteState("there is room again")
        csim_disk_set_free(-1)
    }

    /// Takes no writes for a while, as after an error of its file system.
    func lock(for span: Int64) {
        isReadOnly = true
        noteState("takes no writes")
        world.after(span) { [self] in unlock() }
    }

    private func unlock() {
        guard isReadOnly else { return }
        isReadOnly = false
        noteState("takes writes again")
    }

    private func noteState(_ what: String) {
        (world.isDiskBad, world.lastDiskFault) = (isFull || isReadOnly, world.now)
        world.note("disk: \(what)")
    }

    /// Lets each sync of a stored file take a time for a while.
    func slow(for span: Int64, by delay: @escaping () -> Int64) {
        world.delay = { path in path.contains("/cache/") ? delay() : 0 }
        world.after(span) { [self] in hurry() }
    }

    private func hurry() { world.delay = { _ in 0 } }

    /// Ends all faults, those still to come included.
    func calm() {
        errors = []
        empty()
        unlock()
        hurry()
    }

    /// A count that differs from an earlier one if a fault lies between them, or if the disk is bad
    /// now: a daemon that started meanwhile may refuse to run.
    func countFaults() -> Int {
        if isFull || isReadOnly { faults += 1 }
        return faults
    }

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
        if isReadOnly, path.contains("/cache"), Self.changes.contains(call) {
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
