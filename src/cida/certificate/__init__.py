"""The certificate of alignment: tests of whether the encoding still tells the index."""

from cida.certificate.certificate import Certificate, certify, certify_or_decline

__all__ = ["Certificate", "certify", "certify_or_decline"]
