// What proc(5) and the clocks tell about a process.
import Glibc

/// Processor seconds of a process, ended threads included (clock_getcpuclockid(3)); 0 for none.
func processorSeconds(of pid: pid_t) -> Double {
    var time = timespec()
    guard clock_gettime(clockid_t(~pid << 3 | 2), &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// A process's memory in bytes: the figure `name` of its file `file` (proc(5)); 0 for none.
func memoryBytes(of pid: pid_t, _ file: String, _ name: String) -> Double {
    let lines = readText("/proc/\(pid)/\(file)").split(separator: "\n")
    let line = lines.first { $0.hasPrefix(name) } ?? ""
    return (Double(line.filter(\.isNumber)) ?? 0) * 1024
}
