"""Extract Slurm's codes of wait reasons, which name no user, account or node.

The codes are those in the manual of `squeue` in Slurm 24.05, section JOB REASON CODES, and those of earlier versions.
"""

from __future__ import annotations

import re

WAIT_REASONS = frozenset(
    """
    AccountNotAllowed AccountingPolicy AccountingStorageError AllocFailure AssociationJobLimit AssociationResourceLimit
    AssociationTimeLimit AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes AssocGrpBilling AssocGrpBillingMinutes
    AssocGrpBillingRunMinutes AssocGrpCPUMinutesLimit AssocGrpCPURunMinutesLimit AssocGrpCpuLimit AssocGrpEnergy
    AssocGrpEnergyMinutes AssocGrpEnergyRunMinutes AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes
    AssocGrpJobsLimit AssocGrpLicense AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes AssocGrpMemLimit
    AssocGrpMemMinutes AssocGrpMemRunMinutes AssocGrpNodeLimit AssocGrpNodeMinutes AssocGrpNodeRunMinutes
    AssocGrpSubmitJobsLimit AssocGrpWallLimit AssocMaxBBMinutesPerJob AssocMaxBBPerJob AssocMaxBBPerNode
    AssocMaxBillingMinutesPerJob AssocMaxBillingPerJob AssocMaxBillingPerNode AssocMaxCpuMinutesPerJobLimit
    AssocMaxCpuPerJobLimit AssocMaxCpuPerNode AssocMaxEnergyMinutesPerJob AssocMaxEnergyPerJob AssocMaxEnergyPerNode
    AssocMaxGRESMinutesPerJob AssocMaxGRESPerJob AssocMaxGRESPerNode AssocMaxJobsLimit AssocMaxLicenseMinutesPerJob
    AssocMaxLicensePerJob AssocMaxMemMinutesPerJob AssocMaxMemPerJob AssocMaxMemPerNode AssocMaxNodeMinutesPerJob
    AssocMaxNodePerJobLimit AssocMaxSubmitJobLimit AssocMaxWallDurationPerJobLimit BadConstraints BeginTime
    BurstBufferOperation BurstBufferResources BurstBufferStageIn Cleaning Constraints DeadLine Deadline Dependency
    DependencyNeverSatisfied FedJobLock FrontEndDown InactiveLimit InvalidAccount InvalidQOS JobArrayTaskLimit
    JobHeldAdmin JobHeldUser JobHoldMaxRequeue JobLaunchFailure Licenses LicensesReserved MaxBBMinutesPerAccount
    MaxBBPerAccount MaxBillingPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount MaxJobsPerAccount
    MaxLicensePerAccount MaxMemPerAccount MaxMemoryPerNode MaxMemPerLimit MaxNodePerAccount MaxSubmitJobsPerAccount
    NodeDown NonZeroExitCode None NotAvail OutOfMemory PartitionConfig PartitionDown PartitionInactive
    PartitionNodeLimit PartitionTimeLimit Priority Prolog QOSGrpBB QOSGrpBBMinutes QOSGrpBBRunMinutes QOSGrpBilling
    QOSGrpBillingMinutes QOSGrpBillingRunMinutes QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit QOSGrpCpuLimit
    QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes QOSGrpGRES QOSGrpGRESMinutes QOSGrpGRESRunMinutes
    QOSGrpJobsLimit QOSGrpLicense QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes QOSGrpMemLimit QOSGrpMemMinutes
    QOSGrpMemRunMinutes QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes QOSGrpNodeLimit QOSGrpNodeMinutes
    QOSGrpNodeRunMinutes QOSGrpSubmitJobsLimit QOSGrpWallLimit QOSJobLimit QOSMaxBBMinutesPerJob QOSMaxBBPerJob
    QOSMaxBBPerNode QOSMaxBBPerUser QOSMaxBillingPerUser QOSMaxCpuMinutesPerJobLimit QOSMaxCpuPerJobLimit
    QOSMaxCpuPerNode QOSMaxCpuPerUserLimit QOSMaxGRESMinutesPerJob QOSMaxGRESPerJob QOSMaxGRESPerNode
    QOSMaxGRESPerUser QOSMaxJobsPerUserLimit QOSMaxLicensePerUser QOSMaxMemPerJob QOSMaxMemPerNode QOSMaxMemPerUser
    QOSMaxMemoryPerJob QOSMaxMemoryPerNode QOSMaxMemoryPerUser QOSMaxNodeMinutesPerJob QOSMaxNodePerJobLimit
    QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit QOSMaxWallDurationPerJobLimit QOSMinBB QOSMinBilling
    QOSMinCpuNotSatisfied QOSMinEnergy QOSMinGRES QOSMinLicense QOSMinMemory QOSMinNode QOSNotAllowed
    QOSResourceLimit QOSTimeLimit QOSUsageThreshold ReqNodeNotAvail Reservation ReservationDeleted Resources
    SchedDefer SystemFailure TimeLimit WaitingForScheduling
    """.split()  # noqa: SIM905
)


def extract_code(reason: str) -> str | None:
    """Return the code at the start of a reason; None if it is not a code of Slurm.

    `ReqNodeNotAvail, UnavailableNodes:cn[01-04]` starts with `ReqNodeNotAvail`.
    """
    match = re.match(r"\w+", reason)
    return match[0] if match and match[0] in WAIT_REASONS else None
