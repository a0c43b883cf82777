// A value of a loop's thread that others may ask before it exists.
import Synchronization

/// A value bound to a loop's thread, which makes it later than others may have work for it.
///
/// Work that arrives before is kept and done in its order once the value is made; each work item is
/// done at most once. Nothing bounds how much is kept: the time between both is the program's own
/// start, in which the limits of its listeners hold.
package final class LateLoopBound<Value>: Sendable {
    package typealias Work = @Sendable (Value, EventLoop) -> Void

    private enum Stage {
        case awaited([Work])
        case made(LoopBound<Value>)
        case ended
    }

    private let home: LoopHandle
    private let stage = Mutex(Stage.awaited([]))

    package init(_ home: LoopHandle) { self.home = home }

    /// Makes the value on the loop's thread, and then does what was waiting for it.
    ///
    /// A second call, or one after `end`, makes nothing.
    package func make(_ making: @escaping @Sendable (EventLoop) -> Value) {
        home.enqueue { [self] loop in
            guard stage.withLock({ if case .awaited = $0 { true } else { false } }) else { return }
            let value = making(loop)
            let waiting = stage.withLock { stage -> [Work] in
                guard case .awaited(let waiting) = stage else { return [] }
                stage = .made(LoopBound(value, to: loop))
                return waiting
            }
            for work in waiting { work(value, loop) }
        }
    }

    /// Runs `work` with the value on its own loop: at once there, or when the value is made.
    package func enqueue(
        file: StaticString = #fileID, line: UInt = #line, _ work: @escaping Work
    ) {
        home.enqueue(file: file, line: line) { [self] loop in
            let made = stage.withLock { stage -> LoopBound<Value>? in
                switch stage {
                case .awaited(var waiting):
                    waiting.append(work)
                    stage = .awaited(waiting)
                    return nil
                case .made(let value): return value
                case .ended: return nil
                }
            }
            if let made { work(made.value(on: loop), loop) }
        }
    }

    /// Drops the value and all work; called after the loop has ended.
    package func end() { stage.withLock { $0 = .ended } }
}
