import Model
import Playlists
@testable import Serving
import Testing

/// What a request knows of a resource that another one replaces.
@Suite struct ExchangeProgressTests {
    @Test(arguments: [OfflineForm.whole, .nothing])
    func `the offline form and the origins' word of a list do not hold for another`(
        _ form: OfflineForm
    ) {
        var progress = OriginExchange.Progress()
        progress.offline = form
        progress.hasCheckedOrigins = true
        progress.hasFailed = true
        progress.revivals = 1
        progress.startOver()
        #expect(progress.offline == nil && !progress.hasCheckedOrigins && !progress.hasFailed)
        // It bounds what is done for the whole request.
        #expect(progress.revivals == 1)
    }

    @Test func `after a fetch of the range itself, the origin is not asked for it again`() {
        var progress = OriginExchange.Progress()
        progress.willFetch(MissingPart(wanted: .span(start: 0, end: 8), learnsTypeFirst: true))
        #expect(progress.mayAskAgain)
        // As after a revalidation whose reply may not be shared.
        progress.willFetch(MissingPart(wanted: .span(start: 100, end: 200)))
        #expect(!progress.mayAskAgain)
    }
}
