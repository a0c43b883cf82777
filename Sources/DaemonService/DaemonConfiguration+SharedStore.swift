import CommandSupport
import Foundation
import Model
import Posix
import SharedStore

extension DaemonConfiguration {
    /// Reads the second level and finds its credentials.
    mutating func readSharedStore(_ reader: inout SettingsReader) {
        let headStart = reader.seconds(
            "shared-store-head-start", in: 0...5, default: .milliseconds(100))
        let pollInterval = reader.seconds("shared-store-poll", in: 1...3_600, default: .seconds(5))
        let sharesKeys = reader.isOn("shared-store-keys")
        // `off` on the command line undoes what the file or the environment says.
        guard let text = reader.text("shared-store"), text != "off" else { return }
        do throws(BucketLocation.Fault) {
            let location = try BucketLocation(text)
            do throws(AccessKeys.Fault) {
                let keys = try Self.accessKeys()
                var settings = SharedStoreSettings(location, keys: keys) {
                    try? Self.accessKeys()
                }
                settings.headStart = headStart
                settings.pollInterval = pollInterval
                settings.sharesKeys = sharesKeys
                proxy.sharedStore = settings
            } catch {
                reader.fault("shared-store: \(error)")
            }
        } catch {
            reader.fault("shared-store is wrong: \(error)")
        }
    }

    /// Finds the credentials; blocks on the disk.
    private static func accessKeys() throws(AccessKeys.Fault) -> AccessKeys {
        let environment = ProcessInfo.processInfo.environment
        return try AccessKeys.find(variable: { environment[$0] }) { path in
            (try? InputFile.read(path, atMost: 1 << 20)).map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
