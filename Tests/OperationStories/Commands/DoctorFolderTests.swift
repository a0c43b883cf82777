import ScenarioSupport
import Testing

extension Stories.DoctorTests {
    /// The line of `sluice doctor` about a cache folder, with single blanks.
    private func line(_ folder: String) throws -> String {
        let result = try sluice("doctor", "--port", "0", "--cache-dir", folder)
        let line = result.stdout.split(separator: "\n").first { $0.contains("cache folder") }
        return (line ?? "").split(separator: " ").joined(separator: " ")
    }

    @Test func `a folder that a start would refuse is not called ok, and is not changed`() throws {
        let folder = try TemporaryFolder()
        let photos = folder.makeFolder("photos")
        try writeFile(photos + "/a.jpg", "jpeg".utf8)
        let foreign = try line(photos)
        #expect(foreign.hasPrefix("problem cache folder"), "\(foreign)")
        #expect(foreign.contains("is no store and not empty"), "\(foreign)")
        #expect(listFolder(photos) == ["a.jpg"])

        let newer = folder.makeFolder("newer")
        try writeFile(newer + "/format", "SLUICE STORE 99\n".utf8)
        let format = try line(newer)
        #expect(format.hasPrefix("problem cache folder"), "\(format)")
        #expect(format.contains("has format 99"), "\(format)")
        #expect(listFolder(newer) == ["format"])

        let story = try Story()
        let used = try line(story.cacheFolder)
        #expect(used.hasPrefix("warning cache folder"), "\(used)")
        #expect(used.contains("in use by another process"), "\(used)")
        story.stop()
        #expect(try line(story.cacheFolder).hasPrefix("ok cache folder"))
    }
}
