"""The addresses of the site and of the repository: from _config.yml, else the environment.

ATTENTION_SITE and ATTENTION_REPOSITORY override the file; in a GitHub Actions deploy, GitHub's own
variables fill what is still empty. Where no address is known, no link is made up.
"""

import os


def addresses(environ=os.environ, site: str = "", repository: str = "") -> tuple[str, str]:
    """The site's and the repository's address, each "" where unknown, without a final slash."""
    owner_and_name = environ.get("GITHUB_REPOSITORY", "")
    if owner_and_name and environ.get("GITHUB_ACTIONS"):
        server = environ.get("GITHUB_SERVER_URL", "https://github.com")
        owner, name = owner_and_name.split("/", 1)
        # a fork's own addresses come before those that the original wrote in the file
        repository = f"{server}/{owner_and_name}"
        site = f"https://{owner.lower()}.github.io/{name}"
    site = environ.get("ATTENTION_SITE", site)
    repository = environ.get("ATTENTION_REPOSITORY", repository)
    return site.rstrip("/"), repository.rstrip("/")


def _set(app, config):
    options = config.html_theme_options
    site, repository = addresses(
        site=config.html_baseurl or "", repository=options.get("repository_url") or ""
    )
    config.html_baseurl = site + "/" if site else ""
    config.ogp_site_url = config.html_baseurl
    config.ogp_social_cards = {"enable": bool(site)}  # a card's picture needs a full address
    config.attention_site, config.attention_repository = site, repository
    options.pop("repository_url", None)
    if repository:
        options["repository_url"] = repository
        options["use_repository_button"] = True


def setup(app):
    app.add_config_value("attention_site", "", "env")
    app.add_config_value("attention_repository", "", "env")
    app.connect("config-inited", _set, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
