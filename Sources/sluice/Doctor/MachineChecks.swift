// Reads the state of this machine for `sluice doctor`.
import CommandSupport
import DaemonService
import Diagnosis
import Glibc
import Numbers
import Posix
import Store

/// Looks at what the daemon needs of the machine; blocks for the disk.
struct MachineChecks {
    /// Nil where the configuration is wrong: what depends on it is left out.
    let configuration: DaemonConfiguration?
    /// True if the daemon of the configuration answers, which then has the folder.
    let isAnswered: Bool

    var findings: [Finding] {
        var found: [Finding] = []
        if let configuration {
            found += folder(configuration)
            found.append(Self.descriptors(configuration))
        }
        found.append(MachineFindings.clock(WallTime.now().seconds))
        found.append(
            MachineFindings.memory(
                Self.text("/proc/meminfo") ?? "", limit: Self.memoryLimit, size: OutputFormat.size))
        found.append(MachineFindings.nameServers(Self.text("/etc/resolv.conf")))
        found.append(Self.versions)
        return found
    }

    // MARK: Cache folder

    private func folder(_ configuration: DaemonConfiguration) -> [Finding] {
        let path = configuration.cacheFolder
        // The daemon makes what is missing of the path.
        var place = path
        while access(place, F_OK) != 0, errno == ENOENT, place != "." {
            place = place.split(separator: "/", omittingEmptySubsequences: false).dropLast()
                .joined(separator: "/")
            if place.isEmpty { place = path.hasPrefix("/") ? "/" : "." }
        }
        var found: [Finding] = []
        do throws(SystemError) {
            // A file system that knows no files without names is asked for its modes.
            if place == path, access(place, W_OK) == 0 {
                try Self.tryWriting(in: place)
            } else if access(place, W_OK | X_OK) != 0 {
                throw SystemError("access", code: errno, subject: place)
            }
            found.append(
                place == path
                    ? store(in: path) : .ok("cache folder", "\(path), which will be created"))
        } catch {
            found.append(
                MachineFindings.unwritable(
                    path, because: "\(error)", isFull: [ENOSPC, EDQUOT].contains(error.code),
                    isReadOnly: error.code == EROFS, freeFiles: freeRoom(at: place)?.files))
            return found
        }
        if let free = freeRoom(at: place) {
            if let files = free.files, let finding = MachineFindings.files(free: files) {
                found.append(finding)
            }
            found.append(
                MachineFindings.room(
                    free: free.bytes, kept: Self.bytesKept(in: path),
                    budget: configuration.store.budgetBytes,
                    reserve: configuration.store.minFreeBytes, size: OutputFormat.size))
        }
        let mounts = Self.text("/proc/self/mountinfo") ?? ""
        let resolved = InspectLoader.absolutePath(place) ?? place
        if let kind = MachineFindings.fileSystem(of: resolved, mounts: mounts) {
            found.append(MachineFindings.fileSystem(kind))
        }
        return found
    }

    /// Judges a folder that can be written, as the start of a daemon would.
    private func store(in folder: String) -> Finding {
        let check = "cache folder"
        if isAnswered { return .ok(check, folder) }
        if let owner = FolderOwner(keepingRootOutOf: folder) {
            // As the service's user it may be in order.
            return .warning(
                check, owner.refusal(of: folder), "run this check as the user of the daemon too")
        }
        do throws(StoreError) {
            try ObjectStore.judge(folder)
            return .ok(check, folder)
        } catch {
            switch error {
            case .inUse:
                // A service manager's sockets may have other addresses than the settings.
                return .warning(
                    check, "\(error)",
                    "unless that is the daemon of these settings, stop it or name another folder with --cache-dir"
                )
            case .newerFormat:
                return .problem(
                    check, "\(error)",
                    "start the newer version, or name another folder with --cache-dir")
            case .unusable:
                return .problem(
                    check, "\(error)",
                    "give its files to the user of the daemon (chown -R), or name another folder with --cache-dir"
                )
            default:
                return .problem(check, "\(error)", "name another folder with --cache-dir")
            }
        }
    }

    private static func tryWriting(in folder: String) throws(SystemError) {
        do throws(SystemError) {
            _ = try openUnnamedFile(in: folder)
        } catch {
            guard [EOPNOTSUPP, EISDIR, ENOENT].contains(error.code) else { throw error }
        }
    }

    /// What the files of objects take on the disk; the most that is looked at is enough to judge by.
    private static func bytesKept(in folder: String) -> Int64 {
        var (bytes, count) = (Int64(0), 0)
        for shard in (try? listFolder(folder + "/objects")) ?? [] where shard.isFolder {
            let path = "\(folder)/objects/\(shard.name)"
            for file in (try? listFolder(path)) ?? [] {
                guard count < 200_000 else { return bytes }
                count += 1
                var found = stat()
                if lstat("\(path)/\(file.name)", &found) == 0 {
                    bytes += Int64(found.st_blocks) * 512
                }
            }
        }
        return bytes
    }

    // MARK: Process

    private static func descriptors(_ configuration: DaemonConfiguration) -> Finding {
        let check = "descriptors"
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return .warning(check, "the limit cannot be read", "see ulimit -n")
        }
        // The daemon raises its limit to the hard one.
        let most = Int(clamping: limit.rlim_max)
        let demand = configuration.descriptorDemand
        let advice = "raise it with ulimit -Hn or LimitNOFILE"
        do throws(DescriptorBudget.TooLow) {
            let budget = try DescriptorBudget(limit: most, for: demand)
            let text = "\(most) allowed, for \(budget.connections) connections of players"
            // A household has fewer.
            guard budget.connections < min(demand.connections, 1_000) else {
                return .ok(check, text)
            }
            return .warning(check, text, advice)
        } catch {
            return .problem(
                check, "\(error.limit) allowed, \(error.least) needed", advice + demand.wayOut)
        }
    }

    private static var versions: Finding {
        let versions = LibraryVersions()
        let http2 = versions.curlHasHTTP2 ? "with HTTP/2" : "without HTTP/2"
        let text =
            "sluice \(sluiceVersion); libcurl \(versions.curl) (\(versions.curlTLS ?? "no TLS"), "
            + "\(http2)), \(versions.openSSL), SQLite \(versions.sqlite), nghttp2 \(versions.nghttp2)"
        if versions.curlTLS?.hasPrefix("OpenSSL") != true {
            return .problem(
                "libraries", text,
                "install the libcurl that is built with OpenSSL (libcurl4 in Debian)")
        }
        guard versions.curlHasHTTP2 else {
            return .warning("libraries", text, "install a libcurl with HTTP/2")
        }
        return .ok("libraries", text)
    }

    // MARK: Files of the system

    private static var memoryLimit: Int64? {
        let text = text("/sys/fs/cgroup/memory.max") ?? ""
        return ExternalNumber.integer(text.prefix { $0 != "\n" }, in: 0...Int64(1) << 50)
    }

    /// A file that the kernel or a person writes; proc(5) tells no sizes.
    private static func text(_ path: String) -> String? {
        (try? InputFile.read(path, atMost: 1 << 20)).map { String(decoding: $0, as: UTF8.self) }
    }
}
