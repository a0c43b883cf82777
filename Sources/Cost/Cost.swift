import Glibc

/// Runs parsers and writers on hostile input of three sizes, each twice the one before, for
/// `Fixtures/tools/cost`, which counts the instructions of each run under callgrind.
///
/// Prints a line for each run, in order: the case, the size, nanoseconds of processor time.
@main
enum Cost {
    static func main() throws {
        var arguments = CommandLine.arguments.dropFirst()
        guard let smallest = arguments.popFirst().flatMap({ Int($0) }), smallest > 0 else {
            print("usage: Cost SMALLEST-SIZE [CASE...]")
            exit(64)
        }
        let cases = CostCase.playlists + CostCase.forms + CostCase.json + CostCase.requests
        for subject in cases where arguments.isEmpty || arguments.contains(subject.name) {
            for size in [smallest, smallest * 2, smallest * 4] {
                let work = subject.prepare(size)
                let time = run(work)
                print("\(subject.name)\t\(size)\t\(time)")
            }
        }
    }

    /// Does the work; returns the processor time that it took, in nanoseconds.
    private static func run(_ work: @escaping () -> Void) -> Int {
        pending = work
        let start = processorTime()
        countedByCallgrind()
        pending = nil
        return processorTime() - start
    }

    private static func processorTime() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

/// One parser or writer, and input that is as bad for it as anybody could make it.
struct CostCase {
    let name: String
    /// Makes input of `size` items and returns the work on it.
    let prepare: (_ size: Int) -> () -> Void
}

// Safe: the program has one thread.
nonisolated(unsafe) private var pending: (() -> Void)?

/// What is counted; its symbol is what callgrind looks for.
@inline(never)
func countedByCallgrind() {
    pending?()
}
