import ArgumentParser

/// The second level that several daemons share.
package struct SharedStoreOptions: ParsableArguments {
    package init() {}

    @Option(
        help: ArgumentHelp(
            "Bucket of an S3-compatible store that several daemons share as their second level: misses ask it before origins, and complete resources of films are written to it. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from ~/.aws/credentials. off means none.",
            valueName: "s3://BUCKET/PREFIX?endpoint=URL&region=NAME"))
    var sharedStore: String?

    @Option(
        help: ArgumentHelp(
            """
            Seconds by which the shared store is asked before the origin, 0...5 (0: both at once); \
            default 0.1.
            """,
            valueName: "SECONDS"))
    var sharedStoreHeadStart: String?

    @Option(
        help: ArgumentHelp(
            """
            Seconds between two looks in the shared store for purges, pins, downloads and \
            recordings of other nodes, 1...3600; default 5.
            """,
            valueName: "SECONDS"))
    var sharedStorePoll: String?

    @Flag(help: "Also keep decryption keys in the shared store; default off.")
    var sharedStoreKeys = false
}
