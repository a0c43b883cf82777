import HLS
import Testing
import URISyntax

/// Steering manifests and asset lists.
@Suite struct JSONRewriterTests {
    static func rewrite(_ text: String) throws -> String {
        let bytes = try JSONRewriter.rewrite(
            Array(text.utf8), base: Corpus.base, host: Corpus.host, map: Corpus.map
        ).bytes
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `the reload URI of a steering manifest is rewritten`() throws {
        let result = try Self.rewrite(
            #"{ "VERSION": 1, "TTL": 300, "RELOAD-URI": "steer?session=1", "X": {"URI": "stay"} }"#)
        #expect(
            result
                == #"{ "VERSION": 1, "TTL": 300, "RELOAD-URI": "/R/j/https://cdn.example.com/vod/a/steer?session=1", "X": {"URI": "stay"} }"#
        )
    }

    static let clones = [
        (
            #"{"HOST":"b.example","PARAMS":{"k":"v"},"PER-VARIANT-URIS":{"low":"https://b.example/low.m3u8"}}"#,
            #"{"X-ORIGIN-HOST":"b.example","PARAMS":{"h":"b.example","k":"v"},"PER-VARIANT-URIS":{"low":"/R/p/https://b.example/low.m3u8"}}"#
        ),
        (
            #"{ "PARAMS" : { } , "HOST" : "b\u002eexample" }"#,
            #"{ "PARAMS" : { "h":"b.example"} , "X-ORIGIN-HOST" : "b\u002eexample" }"#
        ),
        (#"{"HOST":"b"}"#, #"{"PARAMS":{"h":"b"},"X-ORIGIN-HOST":"b"}"#),
        (#"{"PARAMS":{"k":"v"}}"#, #"{"PARAMS":{"p":"","k":"v"}}"#),
        (#"{"HOST":7,"PARAMS":"x"}"#, #"{"X-ORIGIN-HOST":7,"PARAMS":"x"}"#),
        (
            #"{"PER-RENDITION-URIS":{"en":"//b.example/en"}}"#,
            #"{"PER-RENDITION-URIS":{"en":"/R/p/https://b.example/en"}}"#
        ),
        ("{}", "{}"),
    ]

    @Test(arguments: clones)
    func `the host of a pathway clone becomes one of its parameters`(
        _ replacement: String, _ expected: String
    ) throws {
        func manifest(_ text: String) -> String {
            #"{"HOST":"stays","PATHWAY-CLONES":[{"URI-REPLACEMENT":\#(text)},{}]}"#
        }
        #expect(try Self.rewrite(manifest(replacement)) == manifest(expected))
    }

    @Test func `the assets of a list are playlists`() throws {
        let result = try Self.rewrite(
            #"{"ASSETS":[{"URI":"https:\/\/ads.example\/1\u002em3u8","DURATION":15.0},{"URI":"../2"}]}"#
        )
        #expect(
            result
                == #"{"ASSETS":[{"URI":"/R/p/https://ads.example/1.m3u8","DURATION":15.0},{"URI":"/R/p/https://cdn.example.com/vod/2"}]}"#
        )
    }

    @Test func `an asset with the extension of media is a file`() throws {
        let result = try Self.rewrite(
            #"{"ASSETS":[{"URI":"ad.mp4?x=1.m3u8"},{"URI":"1.TS"},{"URI":"2.m3u8?x=3.mp4"}]}"#)
        #expect(
            result
                == #"{"ASSETS":[{"URI":"/R/f/https://cdn.example.com/vod/a/ad.mp4?x=1.m3u8"},{"URI":"/R/f/https://cdn.example.com/vod/a/1.TS"},{"URI":"/R/p/https://cdn.example.com/vod/a/2.m3u8?x=3.mp4"}]}"#
        )
        let clone = #"{"PATHWAY-CLONES":[{"URI-REPLACEMENT":{"PER-VARIANT-URIS":{"a":"b.ts"}}}]}"#
        #expect(try Self.rewrite(clone).contains("/R/p/"))
    }

    @Test func `a schedule of date ranges refers to playlists, lists and schedules`() throws {
        let result = try Self.rewrite(
            #"{"DATERANGES":[{"ID":"a","X-ASSET-URI":"ad.m3u8","X-ASSET-LIST":"list?n=1"},{"X-URI":"/s.json","X-COM":"stay"}]}"#
        )
        #expect(
            result
                == #"{"DATERANGES":[{"ID":"a","X-ASSET-URI":"/R/p/https://cdn.example.com/vod/a/ad.m3u8","X-ASSET-LIST":"/R/j/https://cdn.example.com/vod/a/list?n=1"},{"X-URI":"/R/j/https://cdn.example.com/s.json","X-COM":"stay"}]}"#
        )
    }

    @Test func `the images of chapters are images`() throws {
        let result = try Self.rewrite(
            #"[{"start-time":0,"url":"stay","images":[{"image-category":"still","url":"1.jpg"}]},{"metadata":[{"url":"stay"}]}]"#
        )
        #expect(
            result
                == #"[{"start-time":0,"url":"stay","images":[{"image-category":"still","url":"/R/g/https://cdn.example.com/vod/a/1.jpg"}]},{"metadata":[{"url":"stay"}]}]"#
        )
    }

    @Test func `escapes in the original and in the replacement are respected`() throws {
        let made = try JSONRewriter.rewrite(
            Array(#"{"RELOAD-URI":"a\ud83d\ude00\"b\\"}"#.utf8), base: Corpus.base,
            host: Corpus.host
        ) { reference, output in
            output.append(contentsOf: reference.url.bytes.suffix(7))
            output.append(0x0A)
            return true
        }
        #expect(String(decoding: made.bytes, as: UTF8.self) == #"{"RELOAD-URI":"😀\"b\\\u000A"}"#)
    }

    @Test(arguments: [
        #"{"lyrics":["a","b"],"URI":"stay","n":[1,-2.5e3,true,null,{}]}"#, "[]", "\"x\"", " {} ",
        #"{"RELOAD-URI":7,"ASSETS":"x"}"#,
    ])
    func `documents without URIs to rewrite are unchanged`(text: String) throws {
        #expect(try Self.rewrite(text) == text)
    }

    @Test(arguments: [
        "", "{", "}", "{\"a\"}", "{\"a\":}", "[1,]", "[1 2]", "{} x", "\"open", "\"\\", "<html>",
        String(repeating: "[", count: 1000),
    ])
    func `text that is not JSON is rejected`(text: String) {
        #expect(throws: PlaylistError.self) { try Self.rewrite(text) }
    }
}
