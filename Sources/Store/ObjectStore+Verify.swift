/// Reading every byte there is, and deleting what does not prove itself.
import Posix

extension ObjectStore {
    /// Checks every object; safe while the store is in use.
    ///
    /// Blocks for as long as reading the whole store takes; not for a loop's thread.
    ///
    /// - Parameter each: told of the progress now and then, on the calling thread.
    package func verify(_ each: (VerifyProgress) -> Void) -> VerifyReport {
        var report = VerifyReport()
        var progress = VerifyProgress()
        progress.objectsToCheck = core.ledger.objectCount
        for byte in UInt8.min...UInt8.max {
            let digits = String(byte, radix: 16)
            let name = digits.count == 1 ? "0" + digits : digits
            let files = (try? listFolder("\(core.folder.objectsFolder)/\(name)")) ?? []
            for file in files {
                guard let key = ObjectKey(hex: name + file.name) else { continue }
                check(key, &report)
                progress.objects += 1
            }
            progress.bytes = report.checkedBytes
            each(progress)
        }
        return report
    }

    private func check(_ key: ObjectKey, _ report: inout VerifyReport) {
        guard let object = peek(key) else {
            report.deletedObjects += 1
            return
        }
        report.intactObjects += 1
        report.checkedBytes += object.presentBytes
    }
}
