import Base
import Crypto
import Outbound
import Reactor

/// The mail and the SMS of the project: their settings and delivery, the outbox, and where their links may lead.
public struct ProjectMail: Sendable {
    public let configs: EmailConfigs
    public let smsConfigs: SMSConfigs
    public let delivery: OobDelivery
    let sms: SMSOutbox
    let seal: OutboxSeal
    public let mailer: Mailer
    public let outbox: Outbox
    public let continueURLs: ContinueURLs

    init(
        _ configuration: Project.Configuration, resources: Resources, sealing: SealingKey, smtp: SMTPClient,
        http: HTTPClient, loop: EventLoop
    ) {
        configs = EmailConfigs(resources: resources, sealing: sealing, serverActionURL: configuration.actionURL)
        smsConfigs = SMSConfigs(resources: resources, sealing: sealing)
        seal = OutboxSeal(sealing: sealing, random: resources.random)
        delivery = OobDelivery(resources: resources, seal: seal, actionURL: configuration.actionURL, configs: configs)
        sms = SMSOutbox(seal: seal, configs: smsConfigs)
        mailer = Mailer(
            resources: resources, configs: configs, contents: delivery, smsConfigs: smsConfigs, smtp: smtp, http: http,
            loop: loop)
        outbox = Outbox(resources: resources, oobDelivery: delivery, mailer: mailer)
        continueURLs = ContinueURLs(log: resources.log, oobDelivery: delivery)
    }
}
