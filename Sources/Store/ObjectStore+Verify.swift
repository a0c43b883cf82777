import Glibc
import Posix
import Synchronization

/// Verification of every stored byte, and deletion of what does not match its checksum.
extension ObjectStore {
    /// Verifies every object; safe while the store is in use.
    ///
    /// Blocks while the whole store is read; must not be called on a loop's thread.
    ///
    /// - Parameters:
    ///   - each: called on the calling thread, every 64 objects and at the end.
    ///   - goesOn: called there before every object and every extent; false ends the verification.
    /// - Returns: what was found until then.
    package func verify(
        _ each: (VerifyProgress) -> Void, goesOn: () -> Bool = { true }
    ) -> VerifyReport {
        var report = VerifyReport()
        var progress = VerifyProgress()
        progress.objectsToCheck = core.usage.objectCount
        search: for byte in UInt8.min...UInt8.max {
            let folder = core.folder.objectsFolder(of: byte)
            for file in (try? listFolder(folder)) ?? [] {
                guard goesOn() else { break search }
                guard let key = ObjectKey(hex: folder.suffix(2) + file.name) else { continue }
                check(key, &report, goesOn)
                progress.objects += 1
                progress.bytes = report.checkedBytes
                if progress.objects % 64 == 0 { each(progress) }
            }
        }
        each(progress)
        report.isStopped = !goesOn()
        return report
    }

    private func check(_ key: ObjectKey, _ report: inout VerifyReport, _ goesOn: () -> Bool) {
        let damaged = core.counters.statistics.damagedObjects
        guard let object = peek(key) else {
            if access(core.folder.objectPath(key), F_OK) == 0 {
                report.unreadableObjects += 1
            } else if core.counters.statistics.damagedObjects != damaged {
                report.deletedObjects += 1
            }
            // Otherwise it was evicted or purged since its folder was listed.
            return
        }
        let (checked, lost) = object.proveAll(again: true, goesOn)
        report.checkedBytes += checked
        report.lostBytes += lost
        if lost == 0 {
            report.intactObjects += 1
        } else if object.presentBytes > 0 {
            report.repairedObjects += 1
        } else {
            report.deletedObjects += 1
            core.noteLoss()
            core.remove(key, only: object)
        }
    }
}
