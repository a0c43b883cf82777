// Signals as events of a loop (signalfd(2)).
import CLinux
import Glibc
package import Posix

/// Watches signals on one loop.
///
/// They must be blocked in every thread first (`blockSignals`).
package final class SignalSource: ReadinessHandler {
    private let descriptor: OwnedDescriptor
    private let received: (_ signal: CInt, EventLoop) -> Void

    /// Starts watching on `loop`.
    package init(
        _ signals: [CInt], on loop: EventLoop, received: @escaping (CInt, EventLoop) -> Void
    ) throws(SystemError) {
        let number = try check("signalfd") {
            clinux_signal_descriptor(signals, CInt(signals.count))
        }
        descriptor = OwnedDescriptor(taking: number)
        self.received = received
        _ = try loop.watch(number, for: .readable, handler: self)
    }

    package func ready(_ readiness: Readiness, on loop: EventLoop) {
        var info = signalfd_siginfo()
        while read(descriptor.number, &info, MemoryLayout<signalfd_siginfo>.size)
            == MemoryLayout<signalfd_siginfo>.size
        {
            received(CInt(info.ssi_signo), loop)
        }
    }

    /// Blocks all signals in the calling thread and the threads it will start, and ignores SIGPIPE.
    package static func blockSignals() {
        clinux_block_all_signals()
        signal(SIGPIPE, SIG_IGN)
    }
}
