import Glibc
import ScenarioSupport

/// A daemon whose disk can be made to take nothing more.
final class FullDisk: Sendable {
    let story: Story
    private let folder: TemporaryFolder
    private let recorder: DiskRecorder

    init() throws {
        folder = try TemporaryFolder()
        recorder = try DiskRecorder()
        let path = folder.makeFolder("cache")
        story = try Story(
            ["--min-free", "0"], cacheFolder: path,
            environment: recorder.environment(path, isLogged: false))
    }

    /// Fails each write until `makeRoom`.
    func fill() throws { try recorder.fail(.write, with: ENOSPC) }

    func makeRoom() throws { try recorder.fail(.write, with: 0) }
}
