import ArgumentParser
import CommandSupport
import Model
import Numbers
import Posix
import SharedStore

extension DaemonConfiguration {
    /// Reads the number of this node from the cache folder, or makes one.
    ///
    /// With another one a node would not know its own downloads after a restart. Blocks on the disk.
    ///
    /// - Throws: `ExitCode` after printing to standard error that it cannot be read or kept.
    mutating func nameNode() throws {
        let path = cacheFolder + "/node"
        let name = "\(machineName()):\(listeningPlaces.first?.port ?? 0)"
        proxy.sharedStore?.nodeName = name
        proxy.sharedStore?.backlogFile = cacheFolder + "/shared-store-queue"
        do throws(SystemError) {
            let text = try readWhole(path, atMost: 100)
            let number = String(decoding: text, as: UTF8.self).filter { !$0.isNewline }
            if SharedOrder.isHexadecimal(number, atMost: 16) {
                proxy.sharedStore?.node = number
                return
            }
        } catch {
            if error.mayHideSoundFile {
                printError(
                    """
                    sluice: the number of this node in the cache folder cannot be read: \
                    \(error). Start again once it can be read; if it is lost, delete the file: the \
                    node then gets a new number, and does not know the downloads that it has claimed
                    """)
                throw ExitCodes.cacheFolder
            }
        }
        let number = String(UInt64.random(in: 0...UInt64.max), radix: 16, width: 16)
        do throws(SystemError) {
            try replaceFile(path, with: Array("\(number)\n".utf8), in: cacheFolder)
        } catch {
            printError("sluice: the number of this node cannot be kept in \(path): \(error)")
            throw ExitCodes.cacheFolder
        }
        proxy.sharedStore?.node = number
    }
}
