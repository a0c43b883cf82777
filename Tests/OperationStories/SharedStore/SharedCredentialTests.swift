import FixtureCDN
import ScenarioSupport
import Testing

/// Stories of credentials that are replaced while nodes use a shared store.
extension Stories {
    @Suite(.tags(.crowded)) struct SharedCredentialTests {}
}

extension Stories.SharedCredentialTests {
    @Test func `a node that no player asks reads credentials again that were replaced`() throws {
        let tier = try Tier()
        let folder = try TemporaryFolder()
        let file = folder.file("credentials")
        func replace(_ secret: String) throws {
            let text = """
                [default]
                aws_access_key_id = \(tier.bucket.keyID)
                aws_secret_access_key = \(secret)

                """
            try writeFile(file, text.utf8)
        }
        try replace(tier.bucket.secret)
        let node = try tier.node(
            ["--shared-store-poll", "1"],
            environment: [(name: "AWS_SHARED_CREDENTIALS_FILE", value: file)])
        func sign() -> [UInt8]? {
            tier.bucket.objects.first { $0.key.hasPrefix("tier/orders1/node/") }?.value
        }
        #expect(eventually { sign() != nil })
        tier.bucket.setSecret("other/secret")
        try replace("other/secret")
        #expect(eventually { tier.bucket.wrongSignatures > 0 })
        let last = sign()
        #expect(eventually(within: .seconds(60)) { sign() != last })
        #expect(try node.stat("outages_total") == 0)
    }
}
