import Testing

@testable import DaemonService

/// Which setting a misspelt one was meant to be.
@Suite struct NearestNameTests {
    @Test(arguments: [
        ("cache", "cache-dir"), ("host", "host-name"), ("log", "log-level"),
        ("title", "title-pictures"), ("slot", "slots"), ("cach-size", "cache-size"),
        ("prot", "port"),
    ])
    func `the shortest name that a text begins comes before one that is near`(
        _ text: String, _ name: String
    ) {
        #expect(NearestName.of(text, among: ServeOptions.names) == name)
    }

    @Test func `what all names begin with is no text that begins one`() {
        let names = ["SLUICE_CACHE_DIR", "SLUICE_PACE"]
        #expect(NearestName.of("SLUICE_CACHE", among: names, prefix: "SLUICE_") == names[0])
        #expect(NearestName.of("SLUICE_", among: names, prefix: "SLUICE_") == nil)
        #expect(NearestName.of("SLUICE_P", among: names, prefix: "SLUICE_") == nil)
    }
}
