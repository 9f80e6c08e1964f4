"""Black-box audit: is what comes out on two neighbouring tables as alike as promised?"""

from dpbn.audit.blackbox import Verdict, audit, audit_profile

__all__ = ["Verdict", "audit", "audit_profile"]
