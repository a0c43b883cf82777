// Which processor a thread runs on, for what each of them has a copy of.
import CLinux
import Glibc

/// The processors of this machine.
package enum Processors {
    /// How many copies there are of what each processor has one of: a power of two, 64 at most.
    package static let copies: Int = {
        let processors = max(1, min(64, sysconf(Int32(_SC_NPROCESSORS_CONF))))
        var copies = 1
        while copies < processors { copies *= 2 }
        return copies
    }()

    /// The caller's processor (sched_getcpu(3)) as the number of a copy, from 0 up to `copies`, which
    /// must be a power of two.
    ///
    /// The thread may be moved to another processor before it uses the copy, so that two threads can
    /// use one at the same time.
    package static func current(of copies: Int) -> Int { Int(sched_getcpu()) & (copies - 1) }
}
