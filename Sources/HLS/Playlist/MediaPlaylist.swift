import URISyntax

/// The content of a media playlist (RFC 8216bis, 4.4.3 to 4.4.5), each kind in its order.
package struct MediaPlaylist: Sendable {
    package internal(set) var segments: [Segment] = []
    /// EXT-X-PART, of complete segments and of the segment in progress.
    package internal(set) var parts: [PartialSegment] = []
    package internal(set) var preloadHints: [PreloadHint] = []
    package internal(set) var renditionReports: [RenditionReport] = []
    /// EXT-X-KEY.
    package internal(set) var keys: [EncryptionKey] = []
    /// EXT-X-MAP.
    package internal(set) var maps: [InitializationSection] = []
    package internal(set) var dateRanges: [DateRange] = []
    /// EXT-X-PROGRAM-DATE-TIME, each with the media sequence number of the next segment.
    package internal(set) var dates: [(mediaSequence: Int, date: DateTime)] = []
    package internal(set) var serverControl: ServerControl?
    package internal(set) var skip: Skip?

    /// A media segment: its URI line and the tags before it.
    package struct Segment: Sendable {
        /// The range of the URI in the playlist's text.
        package let uri: Range<Int>
        /// The line of the URI, counted from 1.
        package let line: Int
        /// From the first of its own tags (EXTINF, EXT-X-BYTERANGE, EXT-X-GAP, EXT-X-DISCONTINUITY,
        /// EXT-X-PROGRAM-DATE-TIME, EXT-X-BITRATE) to the end of its URI.
        package internal(set) var source: Range<Int>
        /// Its location at the origin; nil if its URI passes to players unchanged.
        package let place: ResourceReference.Place?
        package let role: ResourceRole
        package let mediaSequence: Int
        package let discontinuitySequence: Int
        /// EXT-X-DISCONTINUITY tags before it, since the segment before it.
        package internal(set) var discontinuities = 0
        /// EXTINF; nil if malformed or missing.
        package let duration: Duration?
        /// The bytes of its resource; nil for the whole resource.
        package let byteRange: SubRange?
        /// True if EXT-X-GAP marks it as missing or its URI is malformed.
        package let isGap: Bool
        /// The last EXT-X-PROGRAM-DATE-TIME before it; nil if it has none of its own.
        package internal(set) var date: DateTime?
        /// Key and initialization section in force.
        package let context: SegmentContext

        init(
            uri: Range<Int>, line: Int, place: ResourceReference.Place?, role: ResourceRole,
            byteRange: SubRange?, _ pending: PendingSegment, at position: PlaylistPosition
        ) {
            self.uri = uri
            self.line = line
            self.place = place
            self.role = role
            self.byteRange = byteRange
            source = (pending.start ?? uri.lowerBound)..<uri.upperBound
            duration = pending.duration
            isGap = pending.isGap
            mediaSequence = position.mediaSequence
            discontinuitySequence = position.discontinuitySequence
            context = position.context
        }

        /// The resource that its URI names; nil if the URI passes to players unchanged.
        package var reference: ResourceReference? {
            place.map { place in
                ResourceReference(
                    place: place, role: role, tag: .inf, line: line, mediaSequence: mediaSequence,
                    discontinuitySequence: discontinuitySequence, duration: duration,
                    byteRange: byteRange, isGap: isGap, context: context)
            }
        }
    }

    /// EXT-X-PART (8216bis, 4.4.4.9).
    package struct PartialSegment: AttributeTag {
        package let text: TagText
        package let reference: ResourceReference?
        /// The media sequence number of its parent segment.
        package let mediaSequence: Int
        /// Its index in the parent segment.
        package let index: Int
        package let duration: Duration?
        package let isGap: Bool
    }

    /// EXT-X-PRELOAD-HINT (8216bis, 4.4.5.3).
    package struct PreloadHint: AttributeTag {
        package let text: TagText
        package let reference: ResourceReference?

        /// `PART`, `MAP` or a type of a later protocol version.
        package var type: String? { attributes.text(of: "TYPE") }
    }

    /// EXT-X-RENDITION-REPORT (8216bis, 4.4.5.4).
    package struct RenditionReport: AttributeTag {
        package let text: TagText
        package let reference: ResourceReference?
    }

    /// EXT-X-MAP (8216bis, 4.4.4.5).
    package struct InitializationSection: AttributeTag {
        package let text: TagText
        package let reference: ResourceReference?

        /// The bytes of its resource; nil for the whole resource.
        package var byteRange: SubRange? { reference?.byteRange }
    }

    /// EXT-X-DATERANGE (8216bis, 4.4.5.1 and appendix D).
    package struct DateRange: AttributeTag {
        package let text: TagText
        package let references: [ResourceReference]

        package var id: String? { attributes.text(of: "ID") }
        package var start: DateTime? { attributes.date(of: "START-DATE") }
        package var end: DateTime? { attributes.date(of: "END-DATE") }
        package var duration: Duration? { attributes.length(of: "DURATION") }
        package var plannedDuration: Duration? { attributes.length(of: "PLANNED-DURATION") }
        package var endsOnNext: Bool { attributes.isYes("END-ON-NEXT") }
        package var isInterstitial: Bool {
            attributes.isValue("com.apple.hls.interstitial", of: "CLASS")
        }
    }

    /// EXT-X-SERVER-CONTROL (8216bis, 4.4.3.8).
    package struct ServerControl: AttributeTag {
        package let text: TagText

        package var canBlockReload: Bool { attributes.isYes("CAN-BLOCK-RELOAD") }
        package var canSkipUntil: Duration? { attributes.length(of: "CAN-SKIP-UNTIL") }
        package var holdBack: Duration? { attributes.length(of: "HOLD-BACK") }
        package var partHoldBack: Duration? { attributes.length(of: "PART-HOLD-BACK") }
    }

    /// EXT-X-SKIP (8216bis, 4.4.5.2).
    package struct Skip: AttributeTag {
        package let text: TagText

        /// IDs of date ranges that have been removed.
        package var removedDateRanges: [String] {
            attributes.text(of: "RECENTLY-REMOVED-DATERANGES")?
                .split(separator: "\t").map(String.init) ?? []
        }
    }
}
