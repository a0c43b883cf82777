import Testing

@testable import DaemonService

/// The time zone of quiet hours.
struct ZoneVariableTests {
    private func fault(_ value: String, having files: Set<String> = []) -> String? {
        ZoneVariable.fault(in: value, folder: "/zones") { files.contains($0) }
    }

    @Test(arguments: ["Europe/Berlin", ":Europe/Berlin", "Etc/GMT+5", "/etc/zone", "CET", "<+03"])
    func `a zone without its file is reported, since UTC would be taken for it`(zone: String) {
        #expect(fault(zone)?.contains("'\(zone)'") == true)
    }

    @Test(arguments: ["", "UTC", "EST5", "CET-1CEST,M3.5.0,M10.5.0/3", "<+03>-3"])
    func `a rule needs no file, nor does UTC`(zone: String) {
        #expect(fault(zone) == nil)
    }

    @Test(arguments: [
        ("Europe/Berlin", "/zones/Europe/Berlin"), (":CET", "/zones/CET"),
        ("/etc/zone", "/etc/zone"),
    ])
    func `a zone with its file is in order`(zone: String, file: String) {
        #expect(fault(zone, having: [file]) == nil)
    }
}
