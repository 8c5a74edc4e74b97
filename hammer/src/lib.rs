//! Workloads that contend for one kernel lock each, and say what it cost them.
