// What the state of the machine means for the daemon; pure.
import HTTP
import Numbers

/// Judges what `sluice doctor` read of the machine.
package enum MachineFindings {
    /// - Parameters:
    ///   - free: bytes that the file system has left.
    ///   - kept: bytes that the cache takes already.
    ///   - budget: `cache-size`.
    ///   - reserve: `min-free`.
    ///   - size: bytes in words.
    /// - Returns: whether there is room to store with.
    package static func room(
        free: Int64, kept: Int64, budget: Int64, reserve: Int64, size: (Int64) -> String
    ) -> Finding {
        let check = "disk space"
        let spare = free - reserve
        let facts = "\(size(free)) free, \(size(kept)) in the cache"
        if spare <= 0 {
            return .problem(
                check, "\(facts); min-free leaves nothing to store with",
                "free some, lower --min-free (\(size(reserve))), or name a folder elsewhere with --cache-dir"
            )
        }
        if kept < budget, spare < budget - kept {
            return .warning(
                check, "\(facts); less than cache-size allows (\(size(budget)))",
                "titles are evicted before cache-size is reached; free some or lower --cache-size")
        }
        return .ok(check, facts)
    }

    /// Says why a cache folder cannot be written, and what helps.
    ///
    /// - Parameters:
    ///   - path: the folder.
    ///   - reason: what the system answered to a new file.
    ///   - isFull: whether that means a full disk or quota.
    ///   - isReadOnly: whether it means a file system that allows no writing.
    ///   - freeFiles: files that its file system can still make; nil if it counts none.
    /// - Returns: a problem.
    package static func unwritable(
        _ path: String, because reason: String, isFull: Bool, isReadOnly: Bool = false,
        freeFiles: Int64?
    ) -> Finding {
        let advice =
            if isFull, freeFiles == 0 {
                "the file system is out of inodes (df -i): delete files there, or name a folder on another one with --cache-dir"
            } else if isFull {
                "the disk or a quota is full (df, df -i, quota): make room and keep cache-size below the quota, or name another folder with --cache-dir"
            } else if isReadOnly {
                "mount its file system for writing, allow the service to write there (ReadWritePaths=), or name another folder with --cache-dir"
            } else {
                "give it to the user of the daemon (chown), or name another with --cache-dir"
            }
        return .problem("cache folder", "\(path) cannot be written: \(reason)", advice)
    }

    /// Judges the number of files that the cache folder's file system can still make (inodes).
    ///
    /// - Parameter free: how many.
    /// - Returns: a warning; nil if there are many, or if none are counted.
    package static func files(free: Int64) -> Finding? {
        // At 0, a refused file would have told: some file systems report that whatever they hold.
        guard 1..<1_000 ~= free else { return nil }
        return .warning(
            "disk files", "only \(free) more files (inodes) can be created",
            "titles are evicted before cache-size is reached; delete files there, or name a folder on another file system with --cache-dir"
        )
    }

    /// The kind of file system that holds a path, by the longest mount point above it (proc(5),
    /// mountinfo); nil where the table says nothing.
    package static func fileSystem(of path: String, mounts: String) -> String? {
        var best = (length: -1, kind: "")
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 6, let dash = fields.firstIndex(of: "-"),
                fields.index(after: dash) < fields.endIndex
            else { continue }
            let point = unescaped(fields[4])
            let isAbove =
                path == point || path.hasPrefix(point.hasSuffix("/") ? point : point + "/")
            // The last of several at one point is on top.
            if isAbove, point.utf8.count >= best.length {
                best = (point.utf8.count, String(fields[fields.index(after: dash)]))
            }
        }
        return best.length < 0 ? nil : best.kind
    }

    /// Undoes the octal escapes of mountinfo, which stand for blanks and backslashes.
    private static func unescaped(_ text: Substring) -> String {
        var output: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            guard byte == 0x5C, digits.count == 3,
                digits.allSatisfy({ (0x30...0x37).contains($0) }), digits.first ?? 0x34 < 0x34
            else {
                output.append(byte)
                continue
            }
            output.append(digits.reduce(UInt8(0)) { $0 &* 8 &+ ($1 - 0x30) })
            rest = rest.dropFirst(3)
        }
        return String(decoding: output, as: UTF8.self)
    }

    package static func fileSystem(_ kind: String) -> Finding {
        let check = "file system"
        switch kind {
        case "tmpfs", "ramfs":
            return .warning(
                check, "the cache is on \(kind), in memory",
                "what is stored is gone after a restart of the machine and takes memory; name a folder on a disk with --cache-dir"
            )
        case "overlay", "aufs":
            return .warning(
                check, "the cache is on \(kind), as in a container without a volume",
                "what is stored goes with the container; mount a volume there")
        case "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "afs", "lustre",
            "vboxsf", "virtiofs", "drvfs":
            return .warning(
                check, "the cache is on \(kind), a shared or network file system",
                "locks and sudden losses of it may damage the index; name a folder on a local disk with --cache-dir"
            )
        case "vfat", "msdos", "exfat", "fuseblk":
            return .warning(
                check, "the cache is on \(kind), which has no sparse files",
                "partly kept bodies take their whole length; use ext4, xfs or btrfs")
        default:
            guard kind.hasPrefix("fuse.") else { return .ok(check, kind) }
            return .warning(
                check, "the cache is on \(kind), a file system of a program",
                "it is slow and may lack locks; name a folder on a local disk with --cache-dir")
        }
    }

    /// Seconds of the wall clock since 1970.
    package static func clock(_ now: Int64) -> Finding {
        let (first, last): (Int64, Int64) = (1_735_689_600, 4_102_444_800)
        let text = HTTPDate.format(min(max(now, 0), HTTPDate.latest))
        guard (first..<last).contains(now) else {
            return .problem(
                "clock", "it is \(text) here, which cannot be",
                "set the clock; certificates are refused and ages are wrong until then")
        }
        return .ok("clock", text)
    }

    /// - Parameters:
    ///   - now: seconds of the wall clock when the answer came.
    ///   - date: the field `Date` of an origin's answer.
    ///   - age: its `Age`, if it came out of a cache.
    /// - Returns: how far the clocks are apart; nil for a date that cannot be read.
    package static func clock(_ now: Int64, date: String, age: Int64) -> Finding? {
        guard let there = HTTPDate.parse(date, now: now) else { return nil }
        let (sum, overflows) = there.addingReportingOverflow(min(max(age, 0), 1 << 31))
        let difference = now - (overflows ? there : sum)
        let check = "clock against origin"
        let distance = abs(difference)
        guard distance > 60 else { return .ok(check, "\(distance) s apart") }
        let direction = difference > 0 ? "ahead of" : "behind"
        return .warning(
            check, "this machine is \(distance) s \(direction) the origin",
            "let NTP set the clock (timedatectl set-ntp true); ages of live playlists go wrong")
    }

    /// - Parameters:
    ///   - meminfo: /proc/meminfo.
    ///   - limit: memory.max of the control group; nil without one.
    ///   - size: bytes in words.
    /// - Returns: whether the daemon has room to work.
    package static func memory(_ meminfo: String, limit: Int64?, size: (Int64) -> String) -> Finding
    {
        var available: Int64?
        for line in meminfo.split(separator: "\n") where line.hasPrefix("MemAvailable:") {
            let digits = line.filter { ("0"..."9").contains($0) }
            available = ExternalNumber.integer(digits, in: 0...Int64(1) << 50).map { $0 * 1_024 }
        }
        guard let available else {
            return .warning(
                "memory", "/proc/meminfo cannot be read", "mount /proc, if this is a container")
        }
        var text = "\(size(available)) available"
        if let limit { text += ", limited to \(size(limit))" }
        guard min(available, limit ?? available) < 128_000_000 else { return .ok("memory", text) }
        return .warning(
            "memory", text, "give it 128 MB or more; lower --max-connections and --slots otherwise")
    }

    /// - Parameter text: /etc/resolv.conf; nil where it cannot be read.
    /// - Returns: whether anybody can be asked for names.
    package static func nameServers(_ text: String?) -> Finding {
        let lines = text?.split(separator: "\n") ?? []
        let count = lines.count { $0.hasPrefix("nameserver") }
        guard count > 0 else {
            return .warning(
                "name servers", "/etc/resolv.conf names none",
                "origins are found only if /etc/hosts or --resolve names them, or by --doh-url")
        }
        return .ok("name servers", "\(count) in /etc/resolv.conf")
    }
}
